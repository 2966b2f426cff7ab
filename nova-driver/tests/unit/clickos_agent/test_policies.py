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
        first.update(switch='vale0', port='p0', filtered=True, segment=7)
        second.update(switch='vale0', port='p1', segment=8)
        self.held = set()
        self.neutron = ports.Neutron(self.transport, 'compute1', 60)
        self.policies = policies.Policies(
            cosmos_client.CosmosClient(self.cosmosd.path, 60), self.neutron,
            self.restore)

    def restore(self):
        self.cosmosd.requests.append(('restore', {}))
        return self.held

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

    def test_chains_come_between_addresses_and_rules(self):
        plugin = Plugin()
        plugin.rules = {test_ports.PORT: RULES, test_ports.OTHER: None}
        self.look(plugin)
        # The switch judges a chain by the addresses of its ports.
        self.assertEqual(['port-guard', 'port-limit'] * 2
                         + ['restore'] + ['port-filter'] * 2,
                         [verb for verb, _ in self.cosmosd.requests[-7:]])

    def closed_plugin(self):
        """Return Neutron's half with two ports that have no rules yet."""
        for vif in self.cosmosd.guests[test_ports.GUEST]['vifs']:
            vif.update(filtered=True, mac='fa:16:3e:00:00:01')
        self.cosmosd.closed_looks = 99
        plugin = Plugin()
        plugin.rules = {test_ports.PORT: RULES, test_ports.OTHER: RULES}
        return plugin

    def test_ports_of_a_lost_chain_stay_closed(self):
        plugin = self.closed_plugin()
        for held, opened in ((('vale0', 'p0'), 'p1'), (('vale0', 7), 'p1'),
                             (('vale0', 8), 'p0')):
            self.held = {held}
            self.cosmosd.requests.clear()
            self.assertEqual([opened], [args['port']
                                        for args in self.look(plugin)])
        pauses = [self.policies.run_once()
                  for _look in range(policies._SOON_LOOKS)]
        self.assertEqual({policies._SOON_S, None}, set(pauses))
        self.assertIsNone(pauses[-1])
        # Ports that forward anyway get the rules that they should have.
        self.cosmosd.closed_looks = 0
        self.cosmosd.requests.clear()
        self.assertEqual(['p0', 'p1'], [args['port']
                                        for args in self.look(plugin)])
        self.held = set()
        self.assertIsNone(self.policies.run_once())

    def test_a_held_port_that_the_switch_does_not_have_gets_no_rules(self):
        """It comes back closed at any moment."""
        plugin, self.held = self.closed_plugin(), {('vale0', 'p0')}
        call = self.policies._client.call

        def without_ports(verb, **args):
            return {'ports': []} if verb == 'vif-list' else call(verb, **args)
        self.policies._client.call = without_ports
        self.assertEqual(['p1'], [args['port'] for args in self.look(plugin)])

    def test_a_port_without_its_addresses_stays_closed(self):
        plugin = Plugin()
        plugin.rules = {test_ports.PORT: RULES, test_ports.OTHER: None}
        self.refuse('port-guard', 'p0')
        self.assertEqual(['p1'], [args['port'] for args in self.look(plugin)])

    def test_a_switch_that_starts_again_meanwhile_gets_its_chains_first(self):
        plugin = self.closed_plugin()
        self.refuse('port-filter', 'p0')
        looks = [set(), {('vale0', 8)}]
        self.policies._restore = lambda: looks.pop(0)
        self.assertEqual([], self.look(plugin))
        looks = [set(), set()]
        self.assertEqual(['p1'], [args['port'] for args in self.look(plugin)])

    def refuse(self, refused, port):
        """Let cosmosd refuse a verb for a port."""
        call = self.policies._client.call

        def calling(verb, **args):
            if (verb, args.get('port')) == (refused, port):
                raise cosmos_client.CosmosError('switch', 'no')
            return call(verb, **args)
        self.policies._client.call = calling

    def test_without_neutron_filters_stay(self):
        self.server.stop()
        self.neutron._client = self.neutron._client.prepare(timeout=0.1)
        self.assertRaises(ports.NeutronUnavailable, self.policies.run_once)
