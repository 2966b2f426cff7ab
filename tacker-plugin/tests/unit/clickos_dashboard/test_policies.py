# SPDX-License-Identifier: Apache-2.0
"""The shipped rules are those of the services."""

import unittest

from clickos_api.operations import policy as clickos_policy
from networking_sfc import policies as sfc_policies
from neutron.conf.policies import base as neutron_base
from tacker.policies import base as tacker_base
from tacker.policies import vnf_lcm
from tacker.policies import vnf_package
import yaml

from clickos_dashboard.chains import tables as chain_tables
from clickos_dashboard.packages import tables as package_tables
from clickos_dashboard import policies
from clickos_dashboard.vnfs import tables as vnf_tables
from clickos_dashboard.vnfs import views

_RULES = {
    'clickos': clickos_policy.RULES,
    'nfv-orchestration': [*tacker_base.list_rules(), *vnf_lcm.list_rules(),
                          *vnf_package.list_rules()],
    policies.CHAINS: [*neutron_base.list_rules(),
                      *sfc_policies.list_rules()]}


class PoliciesTest(unittest.TestCase):

    def shipped(self, service):
        with open(policies.DEFAULTS[service]) as text:
            return {rule['name']: rule['check_str']
                    for rule in yaml.safe_load(text)}

    def test_each_rule_is_the_services(self):
        for service, rules in _RULES.items():
            real = {rule.name: rule.check_str for rule in rules}
            shipped = self.shipped(service)
            self.assertTrue(shipped)
            self.assertEqual({name: real.get(name) for name in shipped},
                             shipped)

    def test_each_action_names_a_rule(self):
        tables = (package_tables.Packages, package_tables.Catalog,
                  vnf_tables.Vnfs, chain_tables.Chains, chain_tables.Hops)
        # Horizon's metaclass makes _meta.
        options = [table._meta  # pylint: disable=no-member
                   for table in tables]
        actions = [action for each in options for action in (
            *each.table_actions, *each.row_actions)]
        self.assertGreater(len(actions), 9)
        self.assertEqual([], [a.name for a in actions
                              if not a.policy_rules])
        for rules in (*(a.policy_rules for a in actions), views._WRITE):
            for service, name in rules:
                self.assertIn(name, self.shipped(service))
