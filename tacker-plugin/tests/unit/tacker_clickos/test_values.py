# SPDX-License-Identifier: Apache-2.0
"""The types of properties and how requests are merged."""

import dataclasses
import itertools
import random
import re
import time
import unittest

from tacker_clickos.clickgen import prelude
from tacker_clickos import exception
from tacker_clickos.vnfd import model
from tacker_clickos.vnfd import patterns
from tacker_clickos.vnfd import values

SECRET = 'clickos-secret:11111111-2222-4333-8444-555555555555'
FORWARD = model.Property(
    'p', 'record', format='$proto $port $to $weight', fields={
        'port': model.Property('port', 'port'),
        'to': model.Property('to', 'ipv4'),
        'proto': model.Property('proto', 'enum', values=('tcp', 'udp'),
                                default='tcp'),
        'weight': model.Property('weight', 'integer', optional=True)})
CASES = (
    # type, extra, good value, its plain form
    ('ipv4', {}, '10.0.0.1', '10.0.0.1'),
    ('ipv4_list', {}, ['10.0.0.2', '10.0.0.1'], ['10.0.0.2', '10.0.0.1']),
    ('ipv4_list', {}, [], []),
    ('ipv4_prefix', {}, '10.0.0.0/24', '10.0.0.0/24'),
    ('ipv6', {}, '2001:DB8:0::1', '2001:db8::1'),
    ('ip', {}, '10.0.0.1', '10.0.0.1'),
    ('ip', {}, '2001:DB8:0::1', '2001:db8::1'),
    ('ipv6_prefix', {}, '2001:DB8::/64', '2001:db8::/64'),
    ('mac', {}, 'FA:16:3E:00:00:01', 'fa:16:3e:00:00:01'),
    ('port', {}, 80, 80),
    ('integer', {'minimum': 1, 'maximum': 9}, 9, 9),
    ('integer', {'minimum': 60, 'or_zero': True}, 0, 0),
    ('integer', {'minimum': 60, 'or_zero': True}, 60, 60),
    ('boolean', {}, True, True),
    ('enum', {'values': ('a', 'b')}, 'b', 'b'),
    ('filter_rules', {'max_items': 2}, ['allow icmp'], ['allow icmp']),
    ('inspection_rules', {'max_items': 2},
     ['var X [1,2]', 'pass ip any any -> any any (sid:1;)'],
     ['var X [1,2]', 'pass ip any any -> any any (sid:1;)']),
    ('inspection_rules', {}, [], []),
    ('port_range', {}, '1024-65535', '1024-65535'),
    ('rate', {'unit': 'Bps'}, '10 Mbps', 1250000),
    ('rate', {'unit': 'bps'}, '1.5 Gbps', 1500000000),
    ('rate', {'unit': 'bps'}, '1MiBps', 8388608),
    ('rate', {'unit': 'pps'}, '500 kpps', 500000),
    ('rate', {'unit': 'pps', 'minimum': 7}, 7, 7),
    ('string', {'pattern': r'[a-z]+\.example'},
     'www.example', 'www.example'),
    ('string', {}, 'GET /index.html', 'GET /index.html'),
    ('secret', {}, SECRET, SECRET),
    ('secret', {'default': ''}, '', ''),
    ('secret', {'default': ''}, SECRET, SECRET),
    ('list', {'items': model.Property('p', 'ipv6')}, ['2001:DB8::1'],
     ['2001:db8::1']),
    ('list', {'items': FORWARD}, [{'port': 80, 'to': '10.0.0.1'}],
     [{'port': 80, 'to': '10.0.0.1', 'proto': 'tcp'}]),
    ('record', {'fields': FORWARD.fields}, {'port': 80, 'to': '10.0.0.1',
                                            'proto': 'udp', 'weight': 2},
     {'port': 80, 'to': '10.0.0.1', 'proto': 'udp', 'weight': 2}),
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
    ('ip', {}, '10.0.0.256', 'expected an IPv4 address'),
    ('ip', {}, 'fe80::1%x', 'expected an IPv6 address'),
    ('ip', {}, 7, 'expected text, got int'),
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
    ('integer', {'minimum': 60, 'or_zero': True}, 59,
     '59 is not within 60 to 4294967295, nor 0'),
    ('integer', {}, True, 'expected a number'),
    ('integer', {}, -1, '-1 is not within 0 to'),
    ('integer', {}, 1.5, 'expected a number'),
    ('boolean', {}, 'true', 'expected true or false'),
    ('enum', {'values': ('a', 'b')}, 'c', "one of a, b, got 'c'"),
    ('filter_rules', {}, 'allow all', 'expected a list of rules, got str'),
    ('filter_rules', {}, [], '0 rules, 1 to 64'),
    ('inspection_rules', {}, ['log tcp'],
     "rule 0: must start with alert, drop, pass, var or #, got 'log tcp'"),
    ('inspection_rules', {}, ['# x', 'drop a\nb'],
     'rule 1: expected printable ASCII on one line'),
    ('inspection_rules', {}, ['drop ' + 'x' * 9000],
     'rule 0: 9005 characters, the limit is 8192'),
    ('inspection_rules', {}, [7], 'rule 0: expected text, got int'),
    ('filter_rules', {'max_items': 1}, ['allow all'] * 2,
     '2 rules, 1 to 1'),
    ('filter_rules', {}, ['allow all', 'allow $X'],
     "rule 1: character '$' is not allowed"),
    ('port_range', {}, '0-5', "expected ports such as 1024-65535, got '0-5'"),
    ('port_range', {}, '9-5', 'expected ports'),
    ('port_range', {}, '5-65536', 'expected ports'),
    ('port_range', {}, 80, 'expected text'),
    ('rate', {'unit': 'bps'}, '10 kpps', 'expected a rate such as 10 Mbps'),
    ('rate', {'unit': 'pps'}, '10 Mbps', 'a rate such as 500 kpps'),
    ('rate', {'unit': 'bps'}, 'fast', 'expected a rate'),
    ('rate', {'unit': 'bps', 'maximum': 8}, '9 bps', '9 is not within 0'),
    ('rate', {'unit': 'bps'}, True, 'expected text, got bool'),
    ('string', {'pattern': '[a-z]{1,3}'}, 'abcd',
     "'abcd' does not match [a-z]{1,3}"),
    ('string', {'max_length': 3}, 'abcd', '4 characters, the limit is 3'),
    ('string', {}, 'a"; Quit', 'expected letters, digits'),
    ('string', {}, 'a$X', 'expected letters, digits'),
    ('string', {}, 'a, b', 'expected letters, digits'),
    ('string', {}, 'a\nb', 'expected letters, digits'),
    ('string', {}, 7, 'expected text'),
    ('secret', {}, 'hunter2', 'expected a reference'),
    ('secret', {}, '', 'expected a reference'),
    ('secret', {'default': ''}, 'hunter2', 'expected a reference'),
    ('secret', {}, SECRET + 'x', 'expected a reference'),
    ('list', {'items': model.Property('p', 'ipv4'), 'max_items': 1},
     ['10.0.0.1'] * 2, '2 items, 0 to 1 are possible'),
    ('list', {'items': model.Property('p', 'ipv4'), 'unique': True},
     ['10.0.0.1'] * 2, 'item 1 is given twice'),
    ('list', {'items': model.Property('p', 'ipv4')}, ['10.0.0.1', 'x'],
     "item 1: expected an IPv4 address, got 'x'"),
    ('list', {'items': FORWARD}, [{'port': 80}],
     'item 0: field to: a value is required'),
    ('list', {'items': FORWARD}, {'port': 80}, 'expected a list of items'),
    ('record', {'fields': FORWARD.fields}, {'port': 80, 'too': 1},
     'no field too; there are port, to, proto, weight'),
    ('record', {'fields': FORWARD.fields}, {'port': 80, 'to': 'x'},
     'field to: expected an IPv4 address'),
    ('record', {'fields': FORWARD.fields}, [80], 'expected an object with'),
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


class SecretTest(unittest.TestCase):

    def test_no_message_repeats_a_secret(self):
        prop = model.Property('key', 'secret', handler='a.b')
        with self.assertRaises(exception.PropertyRefused) as refused:
            values.check(prop, 'hunter2')
        self.assertNotIn('hunter2', str(refused.exception))


class PatternsTest(unittest.TestCase):

    def test_patterns_agree_with_pythons(self):
        for pattern in ('a', 'ab?c', 'a*', 'a+b*', '[a-c]{2,3}', r'\d{1,3}x',
                        '[^a]+', r'\w+\.\w{2}', 'a{2}b{0,1}', '.b', 'a{1,}'):
            states = patterns.compiled(pattern)
            for text in map(''.join, itertools.chain(
                    *(itertools.product('abc1.x', repeat=size)
                      for size in range(5)))):
                self.assertEqual(
                    re.fullmatch(pattern, text, re.ASCII) is not None,
                    patterns.matches(states, text), (pattern, text))

    def test_rows_of_optional_characters_agree_with_pythons(self):
        choose, matched = random.Random(7), 0
        for _ in range(5000):
            pattern = ''.join(
                choose.choice(('a', 'b', '[ab]', 'c'))
                + choose.choice(('', '?', '*', '+', '{2}', '{0,3}', '{1,}'))
                for _ in range(choose.randint(1, 6)))
            states = patterns.compiled(pattern)
            for _ in range(8):
                text = ''.join(choose.choices('abcd', k=choose.randint(0, 8)))
                expected = re.fullmatch(pattern, text) is not None
                self.assertEqual(expected, patterns.matches(states, text),
                                 (pattern, text))
                matched += expected
        self.assertGreater(matched, 1000)

    def test_what_is_no_pattern(self):
        for pattern, reason in (
                ('', '1 to 200 characters'), ('x' * 201, '1 to 200'),
                ('(a+)+', r"'\('"), ('a**', r"'\*'"), ('[z-a]', 'range'),
                ('a{300}', 'more than 256'), ('a{3,2}', '2 is below 3'),
                ('[a', r"'\['"), ('a|b', r"'\|'")):
            with self.assertRaisesRegex(patterns.PatternError, reason):
                patterns.compiled(pattern)

    def test_a_hostile_pattern_takes_bounded_time(self):
        states = patterns.compiled('[a]{0,255}b')
        begin = time.process_time()
        self.assertFalse(patterns.matches(states, 'a' * 255))
        self.assertLess(time.process_time() - begin, 1)


class GuestsTest(unittest.TestCase):

    def setUp(self):
        super().setUp()
        self.properties = {
            'rate': model.Property('rate', 'integer', handler='s.rate',
                                   default=5),
            'ports': model.Property('ports', 'port_range', define='PORTS',
                                    default='1000-1999', split=True)}
        self.vdu = model.Vdu(
            name='VDU1', image='x', flavor=None, memory_mib=8, vcpus=1,
            cps=(), most=4, configuration=model.Configuration(
                'x', '', False, False, self.properties))

    def test_a_guest_has_its_own_value(self):
        found = values.merge(self.properties, {}, {
            'rate': 6, 'guests': {'VDU1-1': {'rate': 9}}})
        self.assertEqual([6, 9, 6], [
            values.of_guest(self.vdu, found, 'VDU1-%d' % number)['rate']
            for number in range(3)])

    def test_null_ends_a_guests_own_value(self):
        found = values.merge(self.properties, {}, {
            'guests': {'VDU1-1': {'rate': 9}, 'VDU1-2': {'rate': 8}}})
        found = values.merge(self.properties, found, {
            'guests': {'VDU1-1': {'rate': None}}})
        self.assertEqual({'VDU1-2': {'rate': 8}}, found['guests'])
        found = values.merge(self.properties, found,
                             {'guests': {'VDU1-2': None}})
        self.assertNotIn('guests', found)

    def test_each_guest_has_its_part_of_a_port_range(self):
        found = values.merge(self.properties, {}, {'ports': '1000-2002'})
        self.assertEqual(
            ['1000-1249', '1250-1499', '1500-1749', '1750-2002'], [
                values.of_guest(self.vdu, found, 'VDU1-%d' % number)['ports']
                for number in range(4)])

    def test_a_configuration_may_take_the_ends_of_a_part(self):
        found = values.merge(self.properties, {}, {})
        configuration = dataclasses.replace(
            self.vdu.configuration, text='f($PORTS_FIRST, $PORTS_LAST);')
        ends = [line.split()[1].rstrip(',);') for number in range(4)
                for line in prelude.render(
                    configuration, (), values.of_guest(
                        self.vdu, found, 'VDU1-%d' % number)).splitlines()
                if '$PORTS_' in line]
        self.assertEqual(['1000', '1249', '1250', '1499', '1500', '1749',
                          '1750', '1999'], ends)

    def test_a_port_range_that_is_too_small(self):
        found = values.merge(self.properties, {}, {'ports': '1000-1002'})
        with self.assertRaisesRegex(exception.PropertyRefused,
                                    'fewer ports than the VDU may have'):
            values.of_guest(self.vdu, found, 'VDU1-0')

    def test_wrong_guests(self):
        for request, reason in (
                ([], 'expected an object of at most 64'),
                ({'x': {}}, "'x' is not a guest such as VDU1-0"),
                ({'VDU1-0': []}, 'expected an object, got list'),
                ({'VDU1-0': {'rats': 1}}, 'rats: this VNF has only'),
                ({'VDU1-0': {'guests': {}}}, 'a guest has no guests'),
                ({'VDU1-0': {'rate': -1}}, 'property rate: -1 is not')):
            with self.assertRaisesRegex(exception.PropertyRefused, reason):
                values.merge(self.properties, {}, {'guests': request})


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
