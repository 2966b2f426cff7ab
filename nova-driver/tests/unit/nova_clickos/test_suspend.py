# SPDX-License-Identifier: Apache-2.0
"""Suspend and resume, as Nova asks for them."""

import fixtures
from nova.compute import power_state
from nova.compute import task_states
from nova.compute import vm_states
from nova import exception as nova_exception

from nova_clickos import driver
from nova_clickos import exception
from nova_clickos import guest
from tests.unit.nova_clickos import base


class SuspendTest(base.DriverTestCase):

    def setUp(self):
        super().setUp()
        # The HTTP edge has its own tests.
        self.fetch = self.useFixture(fixtures.MockPatchObject(
            self.driver._desired_state, 'fetch', autospec=True,
            return_value=base.DESIRED)).mock
        self.server = base.instance()
        self.spawn(self.server)
        self.server.launched_at = base.STARTED

    def suspend(self):
        """As Nova does it."""
        self.server.task_state = task_states.SUSPENDING
        self.driver.suspend(None, self.server)
        self.assertEqual(power_state.SUSPENDED, self.state())
        self.server.vm_state = vm_states.SUSPENDED
        self.server.task_state = None

    def resume(self):
        self.server.task_state = task_states.RESUMING
        self.driver.resume(None, self.server, base.network_info())
        self.assertEqual(power_state.RUNNING, self.state())
        self.server.vm_state = vm_states.ACTIVE
        self.server.task_state = None

    def state(self):
        return self.driver.get_info(self.server).state

    def guest(self):
        return self.cosmosd.guests[base.UUID]

    def rolled_back(self, call, cls=exception.CosmosdRefused):
        error = self.assertRaises(nova_exception.InstanceFaultRollback, call)
        self.assertIsInstance(error.inner_exception, cls)

    def test_a_process_host_keeps_the_guest_in_memory(self):
        self.suspend()
        self.assertEqual('paused', self.guest()['state'])
        self.resume()
        self.assertEqual(1, self.cosmosd.verbs().count('create'))
        self.fetch.assert_not_called()

    def test_a_xen_host_saves_the_guest(self):
        self.cosmosd.host_kind = 'xen'
        self.suspend()
        self.assertEqual('saved', self.guest()['state'])
        self.resume()
        self.assertNotIn('pause', self.cosmosd.verbs())
        self.assertEqual(1, self.cosmosd.verbs().count('create'))

    def test_a_restored_guest_is_active_when_its_ports_have_rules(self):
        self.useFixture(fixtures.MockPatchObject(guest, 'OPEN_PAUSE_S', 0))
        self.cosmosd.host_kind = 'xen'
        self.guest()['vifs'][0]['filtered'] = True
        self.suspend()
        self.cosmosd.requests.clear()
        self.cosmosd.closed_looks = 2
        self.resume()
        self.assertEqual(3, self.cosmosd.verbs().count('vif-list'))

    def test_the_state_outlasts_nova_compute(self):
        """Nova asks again at its start and every ten minutes."""
        self.suspend()
        self.driver = driver.ClickOSDriver(self.virtapi)
        self.assertEqual(power_state.SUSPENDED, self.state())

    def test_what_a_person_paused_or_saved_is_not_suspended(self):
        """Nova would stop an active server that is suspended."""
        for state, expected in (('paused', power_state.PAUSED),
                                ('saved', power_state.NOSTATE)):
            self.guest()['state'] = state
            self.assertEqual(expected, self.state())

    def test_a_guest_that_cannot_be_suspended_runs_on(self):
        self.cosmosd.host_kind = 'xen'
        self.cosmosd.faults['save'] = ('internal', 'disk full')
        self.rolled_back(lambda: self.driver.suspend(None, self.server))
        self.assertEqual(power_state.RUNNING, self.state())
        self.assertNotIn('pause', self.cosmosd.verbs())

    def test_a_guest_that_cannot_be_restored_stays_suspended(self):
        self.cosmosd.host_kind = 'xen'
        self.suspend()
        self.cosmosd.faults['restore'] = ('no-memory', 'none left')
        self.rolled_back(self.resume)
        self.assertEqual('saved', self.guest()['state'])
        self.assertEqual(power_state.SUSPENDED, self.state())

    def test_cosmosd_away(self):
        self.suspend()
        self.cosmosd.stop()
        for call in (lambda: self.driver.suspend(None, self.server),
                     self.resume):
            self.rolled_back(call, exception.CosmosdUnavailable)

    def test_suspending_and_resuming_twice(self):
        for self.cosmosd.host_kind in ('process', 'xen'):
            self.suspend()
            self.suspend()
            self.resume()
            self.driver.resume(None, self.server, base.network_info())
            self.assertEqual(power_state.RUNNING, self.state())

    def test_a_guest_that_ended_starts_anew(self):
        for lose in (self.cosmosd.guests.clear,
                     lambda: self.cosmosd.crash(base.UUID, 'killed')):
            self.suspend()
            lose()
            self.assertEqual(power_state.SHUTDOWN, self.state())
            self.resume()
            self.assertEqual([['fw.config', 'deny all']],
                             self.cosmosd.args('create')['writes'])

    def test_a_guest_that_cannot_start_anew_stays_suspended(self):
        self.suspend()
        self.cosmosd.guests.clear()
        self.fetch.side_effect = exception.GuestNotStarted(reason='503')
        self.rolled_back(self.resume, exception.GuestNotStarted)
