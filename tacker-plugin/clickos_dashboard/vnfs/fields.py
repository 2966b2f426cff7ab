# SPDX-License-Identifier: Apache-2.0
"""Typed properties of a descriptor as fields of a form.

The fields check what is typed; the driver checks the values again.
"""

import ipaddress
import json
import re

from django import forms
from django.utils import html
from django.utils.translation import gettext_lazy as _

PREFIX = 'property_'
#: How the driver begins the refusal of a value.
_REFUSED = 'property %s: '


def of(prop, value=None):
    """Return the form field of a property.

    :param prop: descriptor.Property
    :param value: the value in force, by default the descriptor's
    """
    make = _MAKERS.get(prop.type, _json)
    field = make(prop)
    field.label = prop.name
    # Horizon shows help texts as markup.
    field.help_text = html.escape(prop.description)
    field.required = prop.default is None and prop.type != 'boolean'
    field.initial = _shown(prop, prop.default if value is None else value)
    # fields.js checks the value as it is typed.
    field.widget.attrs['data-clickos-type'] = _kind(prop)
    return field


def values(properties, data):
    """Return {property: value} of a form's data; empty fields are left out.

    :param data: the cleaned data, with PREFIX before each name
    """
    found = {}
    for prop in properties:
        value = data.get(PREFIX + prop.name)
        if value not in (None, ''):
            found[prop.name] = value
    return found


def refused(properties, exc):
    """Return the field that a refusal is about, and the reason; or None.

    :param exc: Tacker's refusal, whose text begins with the property
    """
    if getattr(exc, 'status', None) != 400:
        return None
    for prop in sorted(properties, key=lambda each: -len(each.name)):
        lead = _REFUSED % prop.name
        if str(exc).startswith(lead):
            return PREFIX + prop.name, str(exc).removeprefix(lead)
    return None


class Prefix(forms.CharField):
    """An IPv4 network."""

    network = ipaddress.IPv4Network
    message = _('A network such as 10.0.0.0/24 is expected.')

    def clean(self, value):
        text = super().clean(value)
        try:
            if text and '/' not in text:
                raise ValueError
            return str(self.network(text)) if text else ''
        except ValueError:
            raise forms.ValidationError(self.message)


class _Prefix6(Prefix):

    network = ipaddress.IPv6Network
    message = _('A network such as 2001:db8::/64 is expected.')


class _Lines(forms.CharField):
    """A list of texts, one a line."""

    widget = forms.Textarea(attrs={'rows': 6, 'class': 'clickos-rules'})

    def __init__(self, most, whole=False, **options):
        super().__init__(**options)
        self._most = most
        self._whole = whole

    def clean(self, value):
        text = super().clean(value)
        lines = [line.strip() for line in text.splitlines() if line.strip()]
        if len(lines) > self._most:
            raise forms.ValidationError(
                _('%(count)d lines, the limit is %(limit)d'),
                params={'count': len(lines), 'limit': self._most})
        return [self._item(line) for line in lines] or None

    def _item(self, line):
        """Return the item of a line: a text, or a whole number."""
        if not self._whole:
            return line
        if not line.isascii() or not line.isdigit() or len(line) > 10:
            raise forms.ValidationError(_('%(line)s is not a number'),
                                        params={'line': line[:64]})
        return int(line)


class _Json(forms.CharField):
    """A value of a type that this form does not know."""

    widget = forms.Textarea(attrs={'rows': 3})

    def clean(self, value):
        text = super().clean(value)
        try:
            return json.loads(text) if text else None
        except (ValueError, RecursionError):
            return text


def _ip(_prop):
    return forms.GenericIPAddressField()


def _ipv4(_prop):
    return forms.GenericIPAddressField(protocol='IPv4')


def _prefix(_prop):
    return Prefix()


def _ipv6(_prop):
    return forms.GenericIPAddressField(protocol='IPv6')


def _prefix6(_prop):
    return _Prefix6()


def _mac(_prop):
    return forms.RegexField(
        r'^[0-9A-Fa-f]{2}(:[0-9A-Fa-f]{2}){5}\Z',
        error_messages={'invalid': _('A MAC address is expected.')})


def _integer(prop):
    """Return a field; Tacker refuses what lies between 0 and the minimum."""
    least = 0 if prop.limits.get('or_zero') else _number(prop, 'min', 0)
    return forms.IntegerField(min_value=least,
                              max_value=_number(prop, 'max', 2 ** 32 - 1))


def _port(prop):
    return forms.IntegerField(min_value=_number(prop, 'min', 0),
                              max_value=_number(prop, 'max', 65535))


def _number(prop, name, default):
    value = prop.limits.get(name)
    return value if isinstance(value, int) else default


def _boolean(_prop):
    return forms.BooleanField()


def _enum(prop):
    choices = prop.limits.get('values')
    choices = choices if isinstance(choices, list) else []
    return forms.ChoiceField(choices=[(str(c), str(c)) for c in choices])


def _rules(prop):
    return _Lines(_number(prop, 'max_items', 64))


def _json(_prop):
    return _Json()


def _string(prop):
    field = forms.CharField(max_length=_number(prop, 'max_length', 255),
                            strip=False)
    if isinstance(prop.limits.get('pattern'), str):
        field.widget.attrs['data-clickos-pattern'] = prop.limits['pattern']
    return field


def _port_range(_prop):
    return forms.RegexField(
        re.compile(r'^\d{1,5}-\d{1,5}\Z', re.ASCII), error_messages={
            'invalid': _('Ports such as 1024-65535 are expected.')})


def _rate(_prop):
    return forms.RegexField(
        re.compile(r'^\d{1,15}(\.\d{1,6})? ?'
                   r'((k|K|M|G|T|Ki|Mi|Gi|Ti)?(bps|Bps|pps))?\Z',
                   re.ASCII),
        error_messages={'invalid': _('A rate such as 10 Mbps is expected.')})


def _secret(_prop):
    return forms.RegexField(
        r'^clickos-secret:[0-9a-f-]{36}\Z', widget=forms.PasswordInput(
            render_value=True, attrs={'autocomplete': 'off'}),
        error_messages={'invalid': _(
            'A reference such as clickos-secret:UUID is expected.')})


def _list(prop):
    """Return a field with an item a line, or with JSON for records."""
    if _item_type(prop) not in _LINES:
        return _Json()
    return _Lines(_number(prop, 'max_items', 10000),
                  whole=_item_type(prop) in ('integer', 'port'))


def _item_type(prop):
    items = prop.limits.get('items')
    return items.get('type') if isinstance(items, dict) else None


def _kind(prop):
    """Return the type for the check of the page: that of each line."""
    if prop.type == 'ipv4_list':
        return 'lines ipv4'
    if prop.type in ('filter_rules', 'inspection_rules'):
        return f'lines {prop.type}'
    if prop.type == 'list' and _item_type(prop) in _LINES:
        return f'lines {_item_type(prop)}'
    return prop.type if prop.type in _MAKERS else 'json'


#: Types of items that stand on a line each.
_LINES = ('ip', 'ipv4', 'ipv4_prefix', 'ipv6', 'ipv6_prefix', 'mac', 'port',
          'port_range', 'integer', 'rate', 'enum', 'string', 'secret')
_MAKERS = {'ip': _ip, 'ipv4': _ipv4, 'ipv4_prefix': _prefix, 'mac': _mac,
           'ipv6': _ipv6, 'ipv6_prefix': _prefix6,
           'integer': _integer, 'port': _port, 'boolean': _boolean,
           'enum': _enum, 'string': _string, 'port_range': _port_range,
           'rate': _rate, 'secret': _secret, 'list': _list,
           'filter_rules': _rules, 'inspection_rules': _rules,
           'ipv4_list': _rules}


def _shown(prop, value):
    """Return a value as its field shows it."""
    kind = _kind(prop)
    if kind.startswith('lines') and isinstance(value, list):
        return '\n'.join(str(line) for line in value)
    if (kind == 'json' or prop.type == 'list') and value is not None:
        return json.dumps(value)
    return value
