# SPDX-License-Identifier: Apache-2.0
"""Rules of security groups as rules of the switch."""

from unittest import mock

import fixtures
from neutron.plugins.ml2 import db as ml2_db
from oslo_config import cfg
import testtools

from neutron_clickos import filters

PORT = '01234567-89ab-4def-8123-456789abcdef'
OPEN = '11111111-89ab-4def-8123-456789abcdef'


def rule(direction='ingress', ethertype='IPv4', **values):
    return {'direction': direction, 'ethertype': ethertype,
            'security_group_id': 'g', **values}


class FiltersTest(testtools.TestCase):

    def setUp(self):
        super().setUp()
        cfg.CONF([])   # of the policy of contexts
        self.log = self.useFixture(fixtures.FakeLogger())

    def rules(self, *rules, policy_format=2):
        """Return the rules of a port with these rules of its groups."""
        found, refused = self.answer(rules, policy_format)
        self.assertEqual({}, refused)
        return found[PORT]

    def answer(self, rules, policy_format=2):
        """Return the answer for a port with these rules of its groups."""
        known = {mock.Mock(id=PORT): ['g'], mock.Mock(id=OPEN): []}
        plugin = mock.Mock(spec_set=('security_group_rules_for_ports',))
        plugin.security_group_rules_for_ports.side_effect = (
            lambda _context, ports: ports[PORT][
                'security_group_rules'].extend(rules))
        for target, name, value in (
                (ml2_db, 'get_sg_ids_grouped_by_port',
                 mock.Mock(return_value=known)),
                (ml2_db, 'make_port_dict_with_security_groups',
                 lambda port, groups: {
                     'id': port.id, 'security_group_rules': [],
                     'port_security_enabled': port.id == PORT}),
                (filters.directory, 'get_plugin', lambda: plugin)):
            self.useFixture(fixtures.MonkeyPatch(
                f'{target.__name__}.{name}', value))
        with mock.patch.object(
                filters.securitygroup.SecurityGroup, 'get_sgs_stateful_flag',
                lambda _context, groups: {
                    group: group != 'stateless' for group in groups}):
            found, refused = filters.of_ports([PORT, OPEN], policy_format)
        self.assertIsNone(found[OPEN])
        return found, refused

    def test_no_rule_permits_nothing(self):
        self.assertEqual([], self.rules())

    def test_each_kind_of_rule(self):
        self.assertEqual(
            [{'direction': 'egress', 'family': 'ipv4'},
             {'direction': 'ingress', 'family': 'ipv6'},
             {'direction': 'ingress', 'family': 'ipv4', 'protocol': 6,
              'ports': {'first': 80, 'last': 90}, 'remote': '10.0.0.0/8'},
             {'direction': 'egress', 'family': 'ipv4', 'protocol': 17,
              'ports': {'first': 53, 'last': 53}, 'remote': '10.0.0.7/32'},
             {'direction': 'ingress', 'family': 'ipv4', 'protocol': 1,
              'ports': {'first': 8, 'last': 8}, 'code': 0},
             {'direction': 'ingress', 'family': 'ipv4', 'protocol': 1,
              'ports': {'first': 3, 'last': 3}},
             {'direction': 'ingress', 'family': 'ipv6', 'protocol': 58},
             {'direction': 'ingress', 'family': 'ipv4', 'protocol': 112}],
            self.rules(
                rule('egress'), rule(ethertype='IPv6'),
                rule(protocol='tcp', port_range_min=80, port_range_max=90,
                     source_ip_prefix='10.0.0.0/8'),
                rule('egress', protocol='udp', port_range_min=53,
                     port_range_max=53, dest_ip_prefix='10.0.0.7/32'),
                rule(protocol='icmp', port_range_min=8, port_range_max=0),
                rule(protocol='icmp', port_range_min=3),
                rule(ethertype='IPv6', protocol='icmp'),
                rule(protocol='112')))

    def test_ports_of_each_protocol_that_neutron_has_them_for(self):
        for name, number in (('sctp', 132), ('dccp', 33), ('udplite', 136),
                             ('132', 132)):
            self.assertEqual(
                [{'direction': 'ingress', 'family': 'ipv4',
                  'protocol': number, 'ports': {'first': 5, 'last': 6}}],
                self.rules(rule(protocol=name, port_range_min=5,
                                port_range_max=6)))

    def test_what_the_switch_cannot_match_permits_nothing(self):
        self.assertEqual([], self.rules(
            rule(protocol='47', port_range_min=5, port_range_max=6)))
        self.assertIn('no ports of this protocol', self.log.output)

    def test_a_stateless_group_begins_no_connections(self):
        one = {'direction': 'egress', 'family': 'ipv4'}
        self.assertEqual(
            [dict(one, stateless=True), one],
            self.rules(rule('egress', security_group_id='stateless'),
                       rule('egress')))

    def test_an_agent_of_the_release_before_gets_its_format(self):
        self.assertEqual(
            [{'direction': 'ingress', 'family': 'ipv4', 'protocol': 1,
              'ports': {'first': 8, 'last': 8}}],
            self.rules(rule(protocol='icmp', port_range_min=8,
                            port_range_max=0, security_group_id='stateless'),
                       policy_format=1))

    def test_rules_of_the_provider_and_repeated_ones_are_left_out(self):
        twice = rule(source_ip_prefix='10.0.0.0/8')
        self.assertEqual(1, len(self.rules(
            twice, dict(twice, security_group_id='h'),
            rule(protocol='udp', source_port_range_min=67,
                 source_port_range_max=67, port_range_min=68,
                 port_range_max=68))))

    def test_too_many_rules_are_none_and_have_a_reason(self):
        many = [rule(source_ip_prefix='10.0.%d.%d/32' % divmod(n, 256))
                for n in range(1025)]
        self.assertEqual(1024, len(self.rules(*many[1:])))
        found, refused = self.answer(many)
        self.assertNotIn(PORT, found)
        self.assertIn('1025 rules', refused[PORT])
        self.assertIn('1024', refused[PORT])
        self.answer(many)
        self.assertEqual(1, self.log.output.count(PORT))
        self.answer(many[1:])
        self.answer(many)
        self.assertEqual(2, self.log.output.count(PORT))
