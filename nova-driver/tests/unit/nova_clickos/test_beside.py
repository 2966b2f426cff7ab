# SPDX-License-Identifier: Apache-2.0
"""What Nova shows of guests that somebody pauses, or that hear nothing."""

import threading
from unittest import mock

import fixtures
from nova.compute import power_state
from nova.compute import vm_states
from nova import exception as nova_exception

from nova_clickos import beside
from nova_clickos import exception
from nova_clickos import guest
from tests.unit.nova_clickos import base

RUNS = ('active', power_state.RUNNING)
PAUSED = ('paused', power_state.PAUSED)
SILENT = ('active', power_state.NOSTATE)


class BesideTest(base.DriverTestCase):

    def setUp(self):
        super().setUp()
        self.get = self.useFixture(fixtures.MockPatch(
            'nova.objects.Instance.get_by_uuid', autospec=True)).mock
        self.save = self.useFixture(fixtures.MockPatch(
            'nova.objects.Instance.save', autospec=True)).mock

    def server(self, shown=RUNS, **values):
        vm_state, power = shown
        server = base.instance(**{
            'vm_state': vm_state, 'power_state': power, 'host': 'compute1',
            **values})
        self.get.return_value = server
        self.on_host.return_value = [server]
        return server

    def shown(self, server):
        return server.vm_state, server.power_state

    def test_states_are_shown(self):
        for before, state, after in (
                (RUNS, 'paused', PAUSED), (PAUSED, 'running', RUNS),
                (RUNS, 'unreachable', SILENT), (SILENT, 'running', RUNS),
                (SILENT, 'paused', PAUSED)):
            server = self.server(before)
            beside.follow(base.UUID, state)
            self.assertEqual(after, self.shown(server))
            self.save.assert_called_with(
                server, expected_vm_state=[before[0]],
                expected_task_state=[None])

    def test_a_paused_server_can_be_unpaused_by_nova(self):
        server = self.server()
        self.spawn(server)
        self.cosmosd.guests[base.UUID]['state'] = 'paused'
        beside.follow(base.UUID, 'paused')
        self.assertEqual(vm_states.PAUSED, server.vm_state)
        self.driver.unpause(server)
        self.assertEqual(power_state.RUNNING,
                         self.driver.get_info(server).state)

    def test_nothing_new_is_not_saved(self):
        for shown, state in ((RUNS, 'running'), (PAUSED, 'paused'),
                             (RUNS, 'crashed'), (RUNS, 'arriving')):
            self.server(shown)
            beside.follow(base.UUID, state)
        self.save.assert_not_called()

    def test_operations_and_other_servers_are_novas(self):
        for values in ({'task_state': 'pausing'}, {'host': 'compute2'},
                       {'vm_state': 'suspended'}, {'vm_state': 'stopped'}):
            self.server(**values)
            beside.follow(base.UUID, 'paused')
        self.save.assert_not_called()

    def test_an_operation_that_begins_meanwhile(self):
        self.server()
        self.save.side_effect = nova_exception.UnexpectedTaskStateError(
            instance_uuid=base.UUID, expected={}, actual={})
        beside.follow(base.UUID, 'paused')

    def test_a_server_that_is_gone(self):
        self.get.side_effect = nova_exception.InstanceNotFound(
            instance_id=base.UUID)
        beside.follow(base.UUID, 'paused')
        self.save.assert_not_called()

    def test_what_happened_before_the_subscription_is_shown(self):
        server = self.server()
        self.spawn(server)
        self.cosmosd.guests[base.UUID]['state'] = 'unreachable'
        with mock.patch.object(self.driver, '_faults', autospec=True):
            self.driver._on_cosmosd_connected()
        self.assertEqual(SILENT, self.shown(server))

    def test_the_event_comes_to_nova(self):
        server = self.server()
        self.spawn(server)
        done = threading.Event()
        self.save.side_effect = lambda *_args, **_named: done.set()
        self.useFixture(fixtures.MockPatchObject(
            self.driver._availability, 'found'))
        self.driver.register_event_listener(lambda event: None)
        while 'list' not in self.cosmosd.verbs():
            done.wait(0.01)
        self.cosmosd.guests[base.UUID]['state'] = 'paused'
        self.cosmosd.send('guest', uuid=base.UUID, domid=1, state='paused',
                          reason='')
        self.assertTrue(done.wait(60))
        self.assertEqual(PAUSED, self.shown(server))

    def test_power_of_a_guest_that_hears_nothing(self):
        server = self.server()
        self.spawn(server)
        self.cosmosd.guests[base.UUID]['state'] = guest.UNREACHABLE
        self.assertEqual(power_state.NOSTATE,
                         self.driver.get_info(server).state)


class StrangerTest(base.DriverTestCase):

    def test_a_guest_is_left_alone_while_another_domain_has_its_uuid(self):
        server = base.instance()
        self.spawn(server)
        self.useFixture(fixtures.MockPatchObject(
            self.driver._desired_state, 'fetch', autospec=True,
            return_value=base.DESIRED))
        self.cosmosd.strangers = [
            {'domid': 77, 'uuid': base.UUID, 'name': base.UUID}]
        error = self.assertRaises(
            exception.HostCannotStart, self.driver.reboot,
            mock.sentinel.context, server, base.network_info(), 'HARD')
        self.assertIn('xl destroy 77', str(error))
        self.assertNotIn('destroy', self.cosmosd.verbs()[-2:])
        self.assertEqual('running', self.cosmosd.guests[base.UUID]['state'])
