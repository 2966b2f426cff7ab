# SPDX-License-Identifier: Apache-2.0
"""The same firewall as a domain of a Xen host, of the image in Glance."""

from tempest.lib import decorators

from clickos_tempest_plugin.tests import base
from clickos_tempest_plugin.tests.scenario import case


class FirewallOnXenTest(base.OnXenMixin, case.FirewallCase):

    @decorators.attr(type='smoke')
    @decorators.idempotent_id('a51c1b1e-6c0c-4f5e-9a35-6c2f6f3a7d01')
    def test_rule_changes_while_packets_flow(self):
        self.change_a_rule_while_packets_flow()
