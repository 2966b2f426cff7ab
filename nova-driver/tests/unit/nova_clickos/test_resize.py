# SPDX-License-Identifier: Apache-2.0
"""Resize and cold migration."""

from unittest import mock

from clickos_client import document
import fixtures
from nova import exception as nova_exception
from nova import objects

from nova_clickos import driver
from nova_clickos import exception
from tests.unit.nova_clickos import base


class ResizeTest(base.DriverTestCase):
    """A resize or a cold migration, as Nova's compute manager does it."""

    def setUp(self):
        super().setUp()
        # The HTTP edge has its own tests.
        self.fetch = self.useFixture(fixtures.MockPatchObject(
            self.driver._desired_state, 'fetch', autospec=True,
            return_value=base.DESIRED)).mock
        self.nics = base.network_info()
        self.server = base.instance()
        self.spawn(self.server)
        self.server.launched_at = base.STARTED
        self.migration = objects.Migration(source_compute='compute1',
                                           dest_compute='compute1')

    def begin(self, flavor=None, **values):
        return self.driver.migrate_disk_and_power_off(
            None, self.server, '192.0.2.1', flavor or base.flavor(16),
            self.nics, **values)

    def finish(self, memory_mb=16, **values):
        self.server.flavor = base.flavor(memory_mb)
        self.driver.finish_migration(
            None, self.migration, self.server, '', self.nics, None, False, {},
            **values)

    def revert(self, **values):
        self.driver.destroy(None, self.server, self.nics)
        self.server.flavor = base.flavor(8)
        self.driver.finish_revert_migration(
            None, self.server, self.nics, self.migration, **values)

    def confirm(self):
        self.driver.confirm_migration(None, self.migration, self.server,
                                      self.nics)

    def memory(self):
        return [guest['memory_mib'] for guest in self.cosmosd.guests.values()]

    def test_nova_notes_an_address(self):
        self.conf.config(my_ip='192.0.2.7')
        self.assertEqual('192.0.2.7', self.driver.get_host_ip_addr())

    def test_resize_and_confirm_on_one_host(self):
        self.assertEqual('', self.begin())
        self.assertEqual([], self.memory())
        self.finish()
        self.assertEqual([16], self.memory())
        self.confirm()
        self.assertEqual([16], self.memory())

    def test_resize_and_revert(self):
        self.begin()
        self.finish()
        self.revert()
        self.assertEqual([8], self.memory())

    def test_each_start_has_the_desired_state(self):
        self.begin()
        for start in (self.finish, self.revert):
            start()
            self.assertEqual([['fw.config', 'deny all']],
                             self.cosmosd.args('create')['writes'])

    def test_a_migrations_old_host_is_cleaned(self):
        self.migration.dest_compute = 'compute2'
        for _ in range(2):
            self.confirm()
            self.assertEqual([], self.memory())

    def test_a_stopped_server_stays_stopped(self):
        self.driver.power_off(self.server)
        self.begin()
        self.finish(power_on=False)
        self.revert(power_on=False)
        self.assertEqual([], self.memory())

    def refused(self, cls, *parts, **values):
        error = self.assertRaises(nova_exception.InstanceFaultRollback,
                                  self.begin, **values)
        self.assertIsInstance(error.inner_exception, cls)
        for part in parts:
            self.assertIn(part, error.inner_exception.format_message())
        self.assertEqual([8], self.memory())

    def test_disks_are_refused_before_the_guest_ends(self):
        for disk in ({'ephemeral_gb': 1}, {'swap': 64}):
            self.refused(exception.GuestNotStarted, 'no disk', 'guest-16',
                         flavor=base.flavor(16, **disk))
        self.refused(exception.GuestNotStarted, 'no disk',
                     block_device_info={'block_device_mapping': ['volume']})

    def test_the_guest_ends_only_if_it_could_start_again(self):
        self.fetch.side_effect = exception.GuestNotStarted(reason='503')
        self.refused(exception.GuestNotStarted, '503')
        self.fetch.side_effect = None
        self.nics = base.network_info(base.vif(type='binding_failed'))
        self.refused(exception.GuestNotStarted, base.PORT)

    def test_without_cosmosd_the_server_keeps_its_state(self):
        self.cosmosd.stop()
        self.refused(exception.CosmosdUnavailable, 'is not reachable')

    def test_a_host_without_room_and_the_cure(self):
        self.begin()
        self.cosmosd.faults['create'] = ('no-memory', 'none left')
        self.assertRaises(exception.HostCannotStart, self.finish)
        self.cosmosd.faults.clear()
        # Nova gives the server its old flavor back.
        self.server.flavor = base.flavor(8)
        self.driver.reboot(None, self.server, self.nics, 'HARD')
        self.assertEqual([8], self.memory())

    def test_a_killed_nova_compute_reverts_at_its_start(self):
        self.begin()
        self.driver = driver.ClickOSDriver(self.virtapi)
        with mock.patch.object(self.driver._desired_state, 'fetch',
                               autospec=True,
                               return_value=document.Desired()):
            self.driver.finish_revert_migration(
                None, self.server, self.nics, self.migration, None, True)
        self.assertEqual([8], self.memory())
