# SPDX-License-Identifier: Apache-2.0
"""The form fields of typed properties."""

import unittest

from tests.unit.clickos_dashboard import cloud  # noqa: F401 Django's settings

from django import forms

from clickos_dashboard.api import descriptor
from clickos_dashboard.vnfs import fields

GOOD = (
    ('ip', '10.0.0.1', '10.0.0.1'), ('ip', '2001:DB8::1', '2001:db8::1'),
    ('ipv4', '10.0.0.1', '10.0.0.1'),
    ('ipv4_prefix', '10.0.0.0/24', '10.0.0.0/24'),
    ('ipv4_list', '10.0.0.1\n\n 10.0.0.2 ', ['10.0.0.1', '10.0.0.2']),
    ('ipv4_list', '', None),
    ('ipv6', '2001:DB8::1', '2001:db8::1'),
    ('ipv6_prefix', '2001:db8::/64', '2001:db8::/64'),
    ('string', '80 and a space ', '80 and a space '),
    ('port_range', '1024-65535', '1024-65535'),
    ('rate', '10 Mbps', '10 Mbps'), ('rate', '125000', '125000'),
    ('secret', f'clickos-secret:{cloud.VNF}', f'clickos-secret:{cloud.VNF}'),
    ('list', '80\n443', [80, 443]),
    ('record', '{"a": 1}', {'a': 1}),
)

BAD = (
    ('ip', '10.0.0.256'), ('ip', 'server'),
    ('ipv4', '2001:db8::1'),
    ('ipv4_prefix', '10.0.0.1/24'),
    ('ipv4_list', '10.0.0.1\n10.0.0.2\n10.0.0.3'),
    ('ipv6', '10.0.0.1'),
    ('ipv6_prefix', '2001:db8::1/64'),
    ('ipv6_prefix', '2001:db8::'),
    ('string', 9 * 'long '), ('port_range', '80'), ('rate', 'fast'),
    ('secret', 'my-password'), ('list', '80\nhttp'), ('list', '1\n2\n3'),
)


def _field(kind, default=''):
    return fields.of(descriptor.Property('p', kind, '', default, True,
                                         {'max_items': 2, 'max_length': 40,
                                          'items': {'type': 'port'}}))


class FieldsTest(unittest.TestCase):

    def test_good_values_reach_the_driver_in_their_plain_form(self):
        for kind, typed, plain in GOOD:
            self.assertEqual(plain, _field(kind).clean(typed), (kind, typed))

    def test_bad_values_are_refused(self):
        for kind, typed in BAD:
            with self.assertRaises(forms.ValidationError, msg=typed):
                _field(kind).clean(typed)

    def test_each_type_of_the_driver_has_a_check_while_one_types(self):
        from tacker_clickos.vnfd import values
        for kind in values.TYPES:
            shown = _field(kind).widget.attrs['data-clickos-type']
            self.assertEqual(kind == 'record', shown == 'json', kind)

    def test_zero_may_turn_a_property_off(self):
        for limits, least in (({'min': 60}, 60),
                              ({'min': 60, 'or_zero': True}, 0)):
            field = fields.of(descriptor.Property(
                'p', 'integer', '', None, True, limits))
            self.assertEqual(least, field.min_value)

    def test_a_list_is_shown_line_by_line(self):
        self.assertEqual('10.0.0.1\n10.0.0.2', _field(
            'ipv4_list', ['10.0.0.1', '10.0.0.2']).initial)
