# SPDX-License-Identifier: Apache-2.0
"""A rescued server runs a configuration that does nothing."""

from unittest import mock

from clickos_client import document
import fixtures
from nova.compute import task_states
from nova.compute import vm_states
from nova import objects
from oslo_utils import timeutils

from nova_clickos import desired_state
from nova_clickos import exception
from nova_clickos import userdata
from tests.unit import cosmosd
from tests.unit.nova_clickos import base


class RescueTest(base.DriverTestCase):

    def setUp(self):
        super().setUp()
        self.fetch = self.useFixture(fixtures.MockPatchObject(
            desired_state.DesiredState, 'fetch', autospec=True)).mock
        self.fetch.return_value = document.Desired(
            (('fw.config', 'deny all'),), number=7)
        self.server = base.instance(
            launched_at=timeutils.utcnow(), vm_state=vm_states.ACTIVE,
            system_metadata={'clickos_image_sha256': cosmosd.SHA256})
        self.server.info_cache = objects.InstanceInfoCache(
            network_info=base.network_info())

    def shown(self, state, task=None):
        """Let Nova show a state, and an operation."""
        self.server.vm_state, self.server.task_state = state, task

    def rescue(self):
        """Rescue as nova-compute does."""
        self.shown(vm_states.ACTIVE, task_states.RESCUING)
        self.driver.power_off(self.server)
        self.driver.rescue(None, self.server, base.network_info(),
                           objects.ImageMeta(id='another'), 'password', {},
                           None)
        self.shown(vm_states.RESCUED)

    def unrescue(self):
        """Take it back as nova-compute does."""
        self.shown(vm_states.RESCUED, task_states.UNRESCUING)
        self.driver.unrescue(None, self.server)
        self.shown(vm_states.ACTIVE)

    def started(self):
        """Return configuration, writes and number of the last start."""
        args = self.cosmosd.args('create')
        return args['config'], args['writes'], args['number']

    def test_a_rescued_guest_does_nothing_until_it_is_unrescued(self):
        self.rescue()
        self.assertEqual((userdata.RESCUE.config, [], 7), self.started())
        self.assertEqual(cosmosd.SHA256,
                         self.cosmosd.args('create')['image_sha256'])
        self.assertEqual(1, len(self.cosmosd.args('create')['vifs']))
        self.unrescue()
        self.assertEqual((base.CONFIG, [['fw.config', 'deny all']], 7),
                         self.started())

    def test_after_a_boot_of_the_host_it_is_still_rescued(self):
        self.rescue()
        self.cosmosd.guests.clear()
        self.driver.resume_state_on_host_boot(
            None, self.server, base.network_info(), None)
        self.assertEqual(userdata.RESCUE.config, self.started()[0])

    def test_its_start_is_confirmed_so_that_changes_reach_it(self):
        self.rescue()
        self.confirmed.assert_called_once_with(
            mock.ANY, base.UUID, self.server, self.fetch.return_value,
            cosmosd.INCARNATION)

    def test_a_guest_that_does_not_start_has_a_reason(self):
        self.cosmosd.faults['create'] = ('no-memory', 'none left')
        self.assertRaises(exception.HostCannotStart, self.rescue)
        self.assertTrue(
            self.action_events.event_finish_with_failure.called)
