# SPDX-License-Identifier: Apache-2.0
"""A guest is up when Neutron says that its ports are."""

import contextlib
from unittest import mock

from clickos_client import document
import fixtures
from neutronclient.common import exceptions as neutron_exceptions
from nova.compute import task_states
from nova import exception as nova_exception
from nova.virt import virtapi

from tests.unit.nova_clickos import base

EVENT = ('network-vif-plugged', base.PORT)


class EarlyExit(Exception):
    """Nova need not wait for some events."""


class VirtAPI(virtapi.VirtAPI):
    """Nova's side, with an outcome that a test sets."""

    def __init__(self):
        self.awaited = []
        self.left_out = None
        self.outcome = None
        self.failed = False

    @contextlib.contextmanager
    def wait_for_instance_event(self, instance, event_names, timeout=300,
                                error_callback=None):
        self.awaited.append((list(event_names), timeout))
        try:
            yield
        except EarlyExit:
            return
        if event_names and self.failed:
            error_callback(event_names[0], instance)
        if event_names and self.outcome:
            raise self.outcome

    def exit_wait_early(self, events):
        self.left_out = events
        raise EarlyExit


class WiringTest(base.DriverTestCase):

    def setUp(self):
        super().setUp()
        self.nova = self.driver._wiring._virtapi = VirtAPI()
        self.conf.config(vif_plugging_timeout=7)
        self.paused = self.useFixture(fixtures.MockPatch(
            'nova_clickos.wiring.time.sleep', autospec=True)).mock
        client = self.useFixture(fixtures.MockPatch(
            'nova.network.neutron.get_client', autospec=True)).mock
        self.list_ports = client.return_value.list_ports
        self.list_ports.return_value = {'ports': []}

    def start(self, server=None, **details):
        nic = base.vif(active=False)
        nic['details'].update(details)
        self.spawn(server or base.instance(), base.network_info(nic))

    def test_a_new_port_is_awaited(self):
        self.start()
        self.assertEqual([([EVENT], 7)], self.nova.awaited)
        self.assertIn(base.UUID, self.cosmosd.guests)

    def test_so_it_is_after_a_migration(self):
        server = base.instance()
        self.spawn(server)
        self.driver.destroy(None, server, None)
        self.driver._desired_state.fetch = (
            lambda uuid, project_id: document.Desired(()))
        self.driver.finish_migration(
            None, None, server, '', base.network_info(
                base.vif(active=False)), None, False, {})
        self.assertEqual([EVENT], self.nova.awaited[-1][0])

    def test_a_rebuild_has_its_ports_and_an_evacuation_gets_them(self):
        self.driver._desired_state.fetch = (
            lambda uuid, project_id: document.Desired(()))
        for host, awaited in ((self.conf.conf.host, []), ('other', [[EVENT]])):
            self.nova.awaited.clear()
            self.start(base.instance(
                task_state=task_states.REBUILD_SPAWNING, host=host))
            self.assertEqual(awaited, [e for e, _ in self.nova.awaited])
            self.driver.destroy(None, base.instance(), None)

    def test_others_are_not(self):
        self.start(vale_link_up=False)
        self.driver.destroy(None, base.instance(), None)
        self.conf.config(vif_plugging_timeout=0)
        self.start()
        self.driver.destroy(None, base.instance(), None)
        self.conf.config(vif_plugging_timeout=7)
        self.spawn(base.instance(), base.network_info(base.vif(active=True)))
        self.assertEqual([[]] * 3,
                         [events for events, _ in self.nova.awaited])

    def test_a_missing_event_is_fatal_if_nova_says_so(self):
        self.nova.outcome = nova_exception.InstanceEventTimeout()
        self.conf.config(vif_plugging_is_fatal=False)
        self.start()
        self.assertIn(base.UUID, self.cosmosd.guests)
        self.conf.config(vif_plugging_is_fatal=True)
        self.assertRaises(nova_exception.VirtualInterfaceCreateException,
                          self.start)
        self.assertEqual({}, self.cosmosd.guests)

    def test_so_is_a_failed_port(self):
        self.nova.failed = True
        self.conf.config(vif_plugging_is_fatal=False)
        self.start()
        self.conf.config(vif_plugging_is_fatal=True)
        self.assertRaises(nova_exception.VirtualInterfaceCreateException,
                          self.start)
        self.assertEqual({}, self.cosmosd.guests)

    def test_events_that_neutron_holds_back_are_not_awaited(self):
        nics = [base.vif(active=False),
                base.vif(active=False, port_id='other-port')]
        events = [('network-vif-plugged', nic['id']) for nic in nics]
        self.list_ports.side_effect = [
            neutron_exceptions.ServiceUnavailable(),
            {'ports': [{'id': base.PORT}]},
            {'ports': [{'id': base.PORT}, {'id': 'other-port'}]},
            AssertionError('asked once more')]
        self.spawn(base.instance(), base.network_info(*nics))
        self.assertEqual(events, self.nova.left_out)
        self.assertEqual(
            mock.call(id=[base.PORT, 'other-port'], status='ACTIVE',
                      fields=['id']), self.list_ports.mock_calls[-1])

    def test_ports_that_stay_down_are_awaited_after_some_looks(self):
        self.start()
        self.assertIsNone(self.nova.left_out)
        self.assertEqual(4, len(self.list_ports.mock_calls))
        self.assertEqual(1, sum(
            call.args[0] for call in self.paused.mock_calls))
