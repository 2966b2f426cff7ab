# SPDX-License-Identifier: Apache-2.0
"""Filters and limits follow Neutron: oslo.messaging, a cosmosd double."""

from clickos_client import neutron_rpc
import cosmos_client
import oslo_messaging

from clickos_agent import policies
from clickos_agent import ports
from tests.unit.clickos_agent import test_ports

LIMITS = {'rx': {'bits_per_s': 1000}}
GUARD = {'allowed': [{'ip': '10.0.1.5/32'}], 'port_security': True}
RULES = [{'direction': 'egress', 'family': 'ipv4'}]


class Plugin:
    """Neutron's half, with rules that a test sets."""

    target = oslo_messaging.Target(version=neutron_rpc.VERSION)

    def __init__(self):
        self.rules = {}
        self.limits = {}
        self.refused = {}
        self.formats = []

    def get_port_policies(self, context, host, ports, policy_format=1):
        self.formats.append(policy_format)
        known = [port for port, _ in ports if port in self.rules]
        return {'refused': self.refused,
                'guards': {port: GUARD for port in known},
                'rules': {port: self.rules[port] for port in known},
                'limits': {port: self.limits.get(port, {})
                           for port in known}}


class EarlierPlugin(Plugin):
    """Neutron's half of the release before."""

    target = oslo_messaging.Target(version='1.0')

    def get_port_policies(self, context, host, ports):
        return super().get_port_policies(context, host, ports)


class PoliciesTest(test_ports.TestCase):

    def setUp(self):
        super().setUp()
        first, second = self.cosmosd.guests[test_ports.GUEST]['vifs']
        first.update(switch='vale0', port='p0', filtered=True)
        second.update(switch='vale0', port='p1')
        self.neutron = ports.Neutron(self.transport, 'compute1', 60)
        self.policies = policies.Policies(
            cosmos_client.CosmosClient(self.cosmosd.path, 60), self.neutron)

    def look(self, plugin, wanted='port-filter'):
        """Return the arguments of the verb that a look calls."""
        self.server.stop()
        self.server.wait()
        self.serve(neutron_rpc.PLUGIN, plugin, 'neutron')
        self.policies.run_once()
        return [args for verb, args in self.cosmosd.requests
                if verb == wanted]

    def test_all_ports_get_their_rules_and_addresses(self):
        plugin = Plugin()
        plugin.rules = {test_ports.PORT: RULES, test_ports.OTHER: None}
        self.assertEqual(
            [{'switch': 'vale0', 'port': 'p0', 'rules': RULES},
             {'switch': 'vale0', 'port': 'p1', 'rules': None}],
            self.look(plugin))
        self.assertEqual(
            [{'switch': 'vale0', 'port': name, **GUARD}
             for name in ('p0', 'p1')], self.look(plugin, 'port-guard')[-2:])

    def test_an_unknown_port_keeps_its_filter(self):
        self.assertEqual([], self.look(Plugin()))

    def test_all_ports_get_their_limits(self):
        plugin = Plugin()
        plugin.rules = {test_ports.PORT: RULES, test_ports.OTHER: None}
        plugin.limits = {test_ports.OTHER: LIMITS}
        self.assertEqual(
            [{'switch': 'vale0', 'port': 'p0', 'limits': {}},
             {'switch': 'vale0', 'port': 'p1', 'limits': LIMITS}],
            self.look(plugin, 'port-limit'))

    def test_a_neutron_of_the_release_before_is_asked_as_before(self):
        plugin = EarlierPlugin()
        plugin.rules = {test_ports.PORT: RULES}
        self.assertEqual(RULES, self.look(plugin)[-1]['rules'])
        self.assertEqual([1], plugin.formats)

    def test_a_neutron_of_this_release_is_asked_for_its_format(self):
        plugin = Plugin()
        plugin.rules = {test_ports.PORT: RULES}
        self.look(plugin)
        self.assertEqual([2], plugin.formats)

    def test_a_port_with_too_many_rules_keeps_its_own_and_is_known(self):
        plugin = Plugin()
        plugin.refused = {test_ports.PORT: '1025 rules'}
        self.assertEqual([], self.look(plugin))
        self.assertEqual({test_ports.PORT}, self.policies.refused())
        plugin.refused = {}
        self.look(plugin)
        self.assertEqual(set(), self.policies.refused())

    def test_the_rules_come_last(self):
        plugin = Plugin()
        plugin.rules = {test_ports.PORT: RULES}
        self.look(plugin)
        self.assertEqual(['port-guard', 'port-limit', 'port-filter'],
                         [verb for verb, _ in self.cosmosd.requests[-3:]])

    def test_without_neutron_filters_stay(self):
        self.server.stop()
        self.neutron._client = self.neutron._client.prepare(timeout=0.1)
        self.assertRaises(ports.NeutronUnavailable, self.policies.run_once)
