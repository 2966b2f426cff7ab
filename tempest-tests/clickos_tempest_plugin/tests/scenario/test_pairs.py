# SPDX-License-Identifier: Apache-2.0
"""VNFs of two guests with one address, of which one forwards."""

import re

from clickos_client import pings
from tempest.lib import decorators

from clickos_tempest_plugin.common import bounds
from clickos_tempest_plugin.common import csar
from clickos_tempest_plugin.common import tenant
from clickos_tempest_plugin.common import traffic
from clickos_tempest_plugin.common import waiters
from clickos_tempest_plugin.tests import base
from clickos_tempest_plugin.tests.scenario import case

#: What makes a descriptor of the catalog that of a pair.
_CHANGES = (
    (r'artifact: click\n', 'artifact: click\n          ha: pair\n'),
    (r'scale_level: [13]', 'scale_level: 0'),
    (r'initial_delta: \{number_of_instances: 1\}',
     'initial_delta: {number_of_instances: 2}'))
_CONNECTIONS = 1000
_LOST = 'max_takeover_lost_connections'
#: Three advertisements of 200 ms and the skew are missed, then ARP.
_SILENCE_S = 1
#: A guest that resigns is missed for the skew alone: 200 ms at most.
_HAND_OVER_S = 0.5


def make_pair(text):
    """Return a descriptor with a pair of guests."""
    for old, new in _CHANGES:
        text = re.sub(old, new, text)
    return text


class PairMixin(case.Scaling):
    """A pair between two machines.

    The test has the attributes tenant, clickos and vnf_id.
    """

    def state(self, server_id):
        """Return whether a guest is the active one."""
        return self.clickos.read_handler(server_id, 'vrrp.state').strip()

    def assertRoles(self, why):
        """Wait until one guest is active; return it and the standby."""
        servers = self.guests()
        waiters.until(lambda: sorted(map(self.state, servers)),
                      lambda seen: seen == ['active', 'backup'], why)
        return sorted(servers, key=self.state)


class PairsTest(PairMixin, case.FirewallBase):

    vnfd = staticmethod(make_pair)

    def setUp(self):
        super().setUp()
        self.vnf_id = self.tenant.create_vnf(self.vnfd_id, self.addCleanup)
        tenant.completed(self.tenant.instantiate(self.vnf_id, case.OPEN))
        self.left = self.make_endpoint('left', self.addCleanup)
        self.right = self.make_endpoint('right', self.addCleanup)

    @decorators.attr(type='slow')
    @decorators.idempotent_id('4e8f1d7b-0c0e-4a7b-9f1e-0a7c5b0d2f71')
    def test_the_standby_takes_over_from_a_killed_guest(self):
        active, standby = self.assertRoles('one active guest')
        self.assertTrue(self.left.can_ping(self.right))
        ping = self.left.ping(self.right)
        self.host.kill_guest(active)
        waiters.until(lambda: self.state(standby),
                      lambda seen: seen == 'active', 'the standby is active')
        self.assertTrue(self.left.can_ping(self.right))
        self.assertLessEqual(pings.silence_s(ping.text()), _SILENCE_S)
        self.tenant.heal(self.vnf_id)
        self.assertRoles('one active guest after the heal')
        self.assertTrue(self.left.can_ping(self.right))

    @decorators.attr(type='slow')
    @decorators.idempotent_id('4e8f1d7b-0c0e-4a7b-9f1e-0a7c5b0d2f73')
    def test_a_heal_of_both_hands_over_twice(self):
        self.assertRoles('one active guest')
        self.assertTrue(self.left.can_ping(self.right))
        ping = self.left.ping(self.right)
        self.tenant.heal(self.vnf_id)
        self.assertTrue(self.left.can_ping(self.right))
        self.assertLessEqual(pings.silence_s(ping.text()), _HAND_OVER_S)
        self.assertRoles('one active guest after the heal')

    @decorators.attr(type='slow')
    @decorators.idempotent_id('4e8f1d7b-0c0e-4a7b-9f1e-0a7c5b0d2f72')
    def test_a_guest_gives_way_on_request(self):
        active, standby = self.assertRoles('one active guest')
        self.assertTrue(self.left.can_ping(self.right))
        self.clickos.write_handler(active, 'vrrp.resign', '')
        waiters.until(lambda: self.state(standby),
                      lambda seen: seen == 'active', 'the standby is active')
        self.assertEqual('backup', self.state(active))
        self.assertTrue(self.left.can_ping(self.right))


class NatPairBase(PairMixin, base.OnHostTest):
    """A NAT of two guests, and connections through it."""

    def setUp(self):
        super().setUp()
        self.clickos = self.tenant.clickos
        public = self.tenant.make_port(
            'right', self.addCleanup)['fixed_ips'][0]['ip_address']
        self.vnf_id = self.tenant.create_vnf(self.tenant.onboard(
            csar.nat(csar.all_of(make_pair, self.on_host)), self.addCleanup),
            self.addCleanup)
        tenant.completed(self.tenant.instantiate(self.vnf_id, public=public))
        self.left, self.right = [
            traffic.Endpoint(self.tenant, self.os_admin, name,
                             self.addCleanup) for name in tenant.NETWORKS]
        self.right.serve_echo()
        self.active, self.standby = self.assertRoles('one active guest')

    def assertSurvive(self, end):
        """Connections outlive what ends the active guest.

        :param end: function without arguments
        """
        connections = self.left.connect(self.right, _CONNECTIONS)
        waiters.until(
            lambda: self.clickos.read_handler(self.active, 'vrrp.copies'),
            lambda seen: {'connected true', 'waiting 0'} <= set(
                seen.splitlines()), 'the standby has all flows')
        end()
        waiters.until(lambda: self.state(self.standby),
                      lambda seen: seen == 'active', 'the standby is active')
        bounds.hold(_LOST, connections.lost())


class NatPairTest(NatPairBase):

    @decorators.attr(type='slow')
    @decorators.idempotent_id('4e8f1d7b-0c0e-4a7b-9f1e-0a7c5b0d2f74')
    def test_connections_outlive_a_killed_guest(self):
        self.assertSurvive(lambda: self.host.kill_guest(self.active))
