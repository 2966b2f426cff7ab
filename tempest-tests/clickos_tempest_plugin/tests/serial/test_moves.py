# SPDX-License-Identifier: Apache-2.0
"""A server moves to another host, or it is refused and stays."""

from tempest.lib import decorators
from tempest.lib import exceptions

from clickos_tempest_plugin.common import host
from clickos_tempest_plugin.common import waiters
from clickos_tempest_plugin.tests import base
from clickos_tempest_plugin.tests.scenario import pair

#: A talker's handler and its desired state.
RATE = 'source.rate', '40'


@decorators.serial
class MovesTest(base.TwoHostsMixin, pair.PairCase):
    """The listener stays, and each test moves a talker of its own."""

    first = host.Host()

    @classmethod
    def skip_checks(cls):
        super().skip_checks()
        for each in (cls.first, cls.second):
            if not each.available():
                raise cls.skipException(
                    f'[clickos] {each.option} is not set')

    def setUp(self):
        super().setUp()
        self.admin = self.os_admin.servers_client
        self.first_name = self.host_of(self.server_id)
        self.second_name, = self.zone(self.second_zone())['hosts']

    def boot(self, **wanted):
        """Start a talker with a desired state; return its id."""
        server_id = self.boot_talker(self.addCleanup, **wanted)
        self.clickos.write_handler(server_id, *RATE)
        return server_id

    def assertGone(self, place, server_id):
        """Check that soon nothing of a server is on a host."""
        waiters.until(lambda: place.leftovers(server_id),
                      lambda seen: seen == [], f'{server_id} left the host')

    def assertRuns(self, server_id, name, status='ACTIVE'):
        """Check that a talker runs on a host, with its desired state."""
        waiters.until(
            lambda: self.host_of(server_id), lambda seen: seen == name,
            f'{server_id} on {name}')
        waiters.server(self.servers, server_id, status)
        self.assertEqual(RATE[1], self.clickos.read_handler(server_id,
                                                            RATE[0]))
        self.assertHears()

    @decorators.attr(type='slow')
    @decorators.idempotent_id('6f0d1c53-2b8e-4f5d-9a40-0c1f7d3b9e01')
    def test_a_shelved_server_starts_on_another_host(self):
        server_id = self.boot()
        self.servers.shelve_server(server_id)
        waiters.server(self.servers, server_id, 'SHELVED_OFFLOADED')
        self.use('2.77')
        self.servers.unshelve_server(
            server_id, availability_zone=self.second_zone())
        self.assertRuns(server_id, self.second_name)
        self.assertGone(self.first, server_id)

    def move_second_host(self, origin, target):
        """Put the second host into another zone."""
        self.move_host(self.second_name, origin, target)

    @decorators.attr(type='slow')
    @decorators.idempotent_id('6f0d1c53-2b8e-4f5d-9a40-0c1f7d3b9e02')
    def test_cold_migrations_are_confirmed_and_reverted(self):
        zones = (self.second_zone(), self.admin.show_server(
            self.server_id)['server']['OS-EXT-AZ:availability_zone'])
        # Nova moves no host with servers: this runs when they are gone.
        self.addCleanup(self.move_second_host, *zones[::-1])
        server_id = self.boot()
        self.move_second_host(*zones)
        self.use('2.56')
        self.admin.migrate_server(server_id, host=self.second_name)
        self.assertRuns(server_id, self.second_name, 'VERIFY_RESIZE')
        self.assertGone(self.first, server_id)
        self.servers.confirm_resize_server(server_id)
        self.assertRuns(server_id, self.second_name)
        self.admin.migrate_server(server_id, host=self.first_name)
        self.assertRuns(server_id, self.first_name, 'VERIFY_RESIZE')
        self.servers.revert_resize_server(server_id)
        self.assertRuns(server_id, self.second_name)
        self.assertGone(self.first, server_id)

    @decorators.attr(type='slow')
    @decorators.idempotent_id('6f0d1c53-2b8e-4f5d-9a40-0c1f7d3b9e15')
    def test_the_guests_of_a_project_share_a_host(self):
        zones = (self.second_zone(), self.admin.show_server(
            self.server_id)['server']['OS-EXT-AZ:availability_zone'])
        self.addCleanup(self.move_second_host, *zones[::-1])
        self.move_second_host(*zones)
        hosts = {self.host_of(self.boot()) for _ in range(4)}
        self.assertEqual(1, len(hosts), hosts)

    def force_down(self, down):
        """Tell Nova that the second host is dead, or is not."""
        services = self.os_admin.services_client
        services.update_forced_down(host=self.second_name, forced_down=down,
                                    binary='nova-compute')
        state = 'down' if down else 'up'
        waiters.until(
            lambda: services.list_services(
                host=self.second_name)['services'][0]['state'],
            lambda seen: seen == state, f'{self.second_name} {state}')

    @decorators.attr(type='slow')
    @decorators.idempotent_id('6f0d1c53-2b8e-4f5d-9a40-0c1f7d3b9e03')
    def test_an_evacuated_server_leaves_its_host(self):
        server_id = self.boot(availability_zone=self.second_zone())
        self.use('2.29')
        self.addCleanup(self.force_down, False)
        self.force_down(True)
        self.admin.evacuate_server(server_id, host=self.first_name,
                                   force=True)
        self.assertRuns(server_id, self.first_name)
        self.second.restart('nova-compute')
        self.assertGone(self.second, server_id)
        self.assertRuns(server_id, self.first_name)

    @decorators.attr(type='negative')
    @decorators.idempotent_id('6f0d1c53-2b8e-4f5d-9a40-0c1f7d3b9e04')
    def test_a_refused_live_migration_leaves_the_guest_alone(self):
        server_id = self.boot()
        self.use('2.30')
        self.servers.suspend_server(server_id)
        waiters.server(self.servers, server_id, 'SUSPENDED')
        self.assertRaises(
            exceptions.Conflict, self.admin.live_migrate_server, server_id,
            host=self.second_name, block_migration='auto', force=True)
        self.servers.resume_server(server_id)
        self.assertRuns(server_id, self.first_name)
