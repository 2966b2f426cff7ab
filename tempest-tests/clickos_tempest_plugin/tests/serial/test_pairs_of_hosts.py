# SPDX-License-Identifier: Apache-2.0
"""A pair on two hosts, one of which loses its power."""

from tempest.lib.common.utils import data_utils
from tempest.lib import decorators

from clickos_tempest_plugin.common import waiters
from clickos_tempest_plugin.tests import base
from clickos_tempest_plugin.tests.scenario import pair
from clickos_tempest_plugin.tests.scenario import test_pairs


@decorators.serial
class PairOfHostsTest(base.TwoHostsMixin, test_pairs.NatPairBase):

    limit_s = 900

    @classmethod
    def skip_checks(cls):
        super().skip_checks()
        if not cls.second.available():
            raise cls.skipException(
                f'[clickos] {cls.second.option} is not set')

    def setUp(self):
        zones = self.second_zone(), self.first_zone()
        self.second_name, = self.zone(zones[0])['hosts']
        self.addCleanup(self.move_host, self.second_name, *zones[::-1])
        self.move_host(self.second_name, *zones)
        super().setUp()

    def first_zone(self):
        """Return the zone in which servers run that name none."""
        probe = self.tenant.boot(
            data_utils.rand_name('probe'),
            [self.tenant.make_port('left', self.addCleanup)], pair.LISTENER,
            self.addCleanup)
        return self.os_admin.servers_client.show_server(probe)['server'][
            'OS-EXT-AZ:availability_zone']

    @decorators.attr(type='slow')
    @decorators.idempotent_id('4e8f1d7b-0c0e-4a7b-9f1e-0a7c5b0d2f75')
    def test_connections_outlive_a_killed_host(self):
        hosts = {self.host_of(each): each
                 for each in (self.active, self.standby)}
        self.assertEqual(2, len(hosts), hosts)
        if hosts[self.second_name] != self.active:
            self.clickos.write_handler(self.active, 'vrrp.resign', '')
            self.active, self.standby = self.standby, self.active
            waiters.until(lambda: self.state(self.active),
                          lambda seen: seen == 'active', 'the other is active')
        self.assertSurvive(self.second.power_cut)
