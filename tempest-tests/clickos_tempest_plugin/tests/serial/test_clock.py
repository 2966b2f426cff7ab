# SPDX-License-Identifier: Apache-2.0
"""The time of day of a compute host jumps; its guests do not notice."""

from tempest.lib import decorators

from clickos_tempest_plugin.tests import base
from clickos_tempest_plugin.tests.scenario import case

_JUMP_S = 7200


@decorators.serial
class FaultsOfClocksTest(base.OnXenMixin, case.FirewallCase):
    """A firewall on a host whose clock is set, as a wrong NTP server does."""

    limit_s = 900

    @decorators.attr(type='slow')
    @decorators.idempotent_id('5f0a3c52-7d0f-4f57-9d0a-6f3f5b1c2a01')
    def test_a_clock_jumps_forward_and_back(self):
        """No packet is lost; writes and a heal work as before."""
        for jump_s in (_JUMP_S, -2 * _JUMP_S, _JUMP_S):
            ping = self.left.ping(self.right)
            self.host.jump_clock(jump_s)
            rules = ['allow icmp', f'deny udp && dst port {jump_s % 65536}']
            self.assertEqual('accepted', self.update(rules)['verdict'])
            self.assertEqual(rules, self.rules())
            self.assertEqual((), ping.result().lost, jump_s)
            self.wait_server(('ACTIVE',))
        self.tenant.heal(self.vnf_id)
        self.server_id = self.tenant.server_id(self.vnf_id)
        self.assertEqual(rules, self.rules())
        self.assertTrue(self.left.can_ping(self.right))
