# SPDX-License-Identifier: Apache-2.0
"""The types of properties and how requests are merged."""

import unittest

from tacker_clickos import exception
from tacker_clickos.vnfd import model
from tacker_clickos.vnfd import values

CASES = (
    # type, extra, good value, its plain form
    ('ipv4', {}, '10.0.0.1', '10.0.0.1'),
    ('ipv4_list', {}, ['10.0.0.2', '10.0.0.1'], ['10.0.0.2', '10.0.0.1']),
    ('ipv4_list', {}, [], []),
    ('ipv4_prefix', {}, '10.0.0.0/24', '10.0.0.0/24'),
    ('ipv6', {}, '2001:DB8:0::1', '2001:db8::1'),
    ('ipv6_prefix', {}, '2001:DB8::/64', '2001:db8::/64'),
    ('mac', {}, 'FA:16:3E:00:00:01', 'fa:16:3e:00:00:01'),
    ('port', {}, 80, 80),
    ('integer', {'minimum': 1, 'maximum': 9}, 9, 9),
    ('boolean', {}, True, True),
    ('enum', {'values': ('a', 'b')}, 'b', 'b'),
    ('filter_rules', {'max_items': 2}, ['allow icmp'], ['allow icmp']),
)

BAD = (
    ('ipv4', {}, '10.0.0.256', "got '10.0.0.256'"),
    ('ipv4', {}, '10.0.0.1, x', 'expected an IPv4 address'),
    ('ipv4', {}, 7, 'expected text, got int'),
    ('ipv4', {}, 'x' * 65, '65 characters, the limit is 64'),
    ('ipv4_list', {}, '10.0.0.1', 'expected a list of addresses, got str'),
    ('ipv4_list', {}, ['10.0.0.1', '$X'], 'expected an IPv4 address'),
    ('ipv4_list', {}, ['10.0.0.1'] * 2, 'address 10.0.0.1 is given twice'),
    ('ipv4_list', {'max_items': 1}, ['10.0.0.1', '10.0.0.2'],
     '2 addresses, 0 to 1 are possible'),
    ('ipv4_prefix', {}, '10.0.0.1/24', 'expected an IPv4 network'),
    ('ipv4_prefix', {}, '10.0.0.1', 'expected an IPv4 network'),
    ('ipv6', {}, '10.0.0.1', 'expected an IPv6 address'),
    ('ipv6', {}, 'fe80::1%x); Quit', 'expected an IPv6 address'),
    ('ipv6', {}, 7, 'expected text, got int'),
    ('ipv6_prefix', {}, '2001:db8::1/64', 'expected an IPv6 network'),
    ('ipv6_prefix', {}, '2001:db8::', 'expected an IPv6 network'),
    ('ipv6_prefix', {}, 'fe80::%x/64', 'expected an IPv6 network'),
    ('mac', {}, 'fa:16:3e:00:00', 'expected a MAC address'),
    ('mac', {}, 'fa:16:3e:00:00:01\n', 'expected a MAC address'),
    ('port', {}, 65536, '65536 is not within 0 to 65535'),
    ('port', {}, '80', 'expected a number'),
    ('integer', {'minimum': 1, 'maximum': 9}, 10,
     '10 is not within 1 to 9'),
    ('integer', {}, True, 'expected a number'),
    ('integer', {}, -1, '-1 is not within 0 to'),
    ('integer', {}, 1.5, 'expected a number'),
    ('boolean', {}, 'true', 'expected true or false'),
    ('enum', {'values': ('a', 'b')}, 'c', "one of a, b, got 'c'"),
    ('filter_rules', {}, 'allow all', 'expected a list of rules, got str'),
    ('filter_rules', {}, [], '0 rules, 1 to 64'),
    ('filter_rules', {'max_items': 1}, ['allow all'] * 2,
     '2 rules, 1 to 1'),
    ('filter_rules', {}, ['allow all', 'allow $X'],
     "rule 1: character '$' is not allowed"),
)


class ValuesTest(unittest.TestCase):

    def test_good_values(self):
        for type_, extra, value, plain in CASES:
            prop = model.Property('p', type_, handler='a.b', **extra)
            self.assertEqual(plain, values.check(prop, value))

    def test_bad_values_name_property_value_and_limit(self):
        for type_, extra, value, reason in BAD:
            prop = model.Property('p', type_, handler='a.b', **extra)
            with self.assertRaises(exception.PropertyRefused) as refused:
                values.check(prop, value)
            self.assertIn('property p: ', str(refused.exception))
            self.assertIn(reason, str(refused.exception))

    def test_every_type_has_a_good_and_a_bad_case(self):
        self.assertEqual(set(values.TYPES), {case[0] for case in CASES})
        self.assertEqual(set(values.TYPES), {case[0] for case in BAD})


class MergeTest(unittest.TestCase):

    PROPERTIES = {
        'rate': model.Property('rate', 'integer', handler='s.rate',
                               default=5),
        'to': model.Property('to', 'ipv4', handler='s.to')}

    def merge(self, in_force, wanted):
        return values.merge(self.PROPERTIES, in_force, wanted)

    def test_given_replaces_absent_stays_null_takes_default(self):
        in_force = {'rate': 7, 'to': '10.0.0.1'}
        self.assertEqual({'rate': 8, 'to': '10.0.0.1'},
                         self.merge(in_force, {'rate': 8}))
        self.assertEqual({'rate': 5, 'to': '10.0.0.1'},
                         self.merge(in_force, {'rate': None}))
        self.assertEqual({'rate': 7, 'to': '10.0.0.1'}, in_force)

    def test_a_value_without_default_is_required(self):
        with self.assertRaisesRegex(exception.PropertyRefused,
                                    'property to: a value is required'):
            self.merge({}, {'rate': 1})
        with self.assertRaisesRegex(exception.PropertyRefused, 'property to'):
            self.merge({'to': '10.0.0.1'}, {'to': None})

    def test_an_unknown_name_is_refused_with_the_known_ones(self):
        with self.assertRaisesRegex(exception.PropertyRefused,
                                    'property rats: .*only: rate, to'):
            self.merge({'to': '10.0.0.1'}, {'rats': 1})

    def test_the_request_must_be_an_object(self):
        for wanted in ('x', 1, [], True):
            with self.assertRaisesRegex(exception.PropertyRefused,
                                        'expected an object'):
                self.merge({}, wanted)
