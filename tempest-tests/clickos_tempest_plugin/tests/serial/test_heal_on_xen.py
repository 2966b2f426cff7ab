# SPDX-License-Identifier: Apache-2.0
"""The toolstack of a Xen host restarts, and a firewall's domain dies."""

from tempest.lib import decorators

from clickos_tempest_plugin.common import waiters
from clickos_tempest_plugin.tests import base
from clickos_tempest_plugin.tests.scenario import case


@decorators.serial
class HealOnXenTest(base.OnXenMixin, case.FirewallCase):

    @decorators.attr(type='slow')
    @decorators.idempotent_id('a51c1b1e-6c0c-4f5e-9a35-6c2f6f3a7d02')
    def test_domain_that_dies_is_healed_with_the_live_rule(self):
        self.clickos.write_handler(self.server_id, 'fw.config',
                                   'allow icmp, deny all')
        self.host.restart('cosmosd')
        self.host.kill_guest(self.server_id)
        self.wait_server(('ERROR', 'SHUTOFF'))
        self.assertTrue(self.left.is_cut_off(self.right))
        self.tenant.heal(self.vnf_id)
        self.assertEqual(self.server_id, self.tenant.server_id(self.vnf_id))
        self.assertEqual(['allow icmp', 'deny all'], self.rules())
        waiters.until(lambda: self.left.can_ping(self.right), bool,
                      f'ping through healed guest {self.server_id}')
