# SPDX-License-Identifier: Apache-2.0
"""Forms of chains: a new one, another rule, another hop."""

import re

from django.core import exceptions as django_exc
from django import forms as django_forms
from django.utils.translation import gettext_lazy as _
from horizon import exceptions
from horizon import forms
from horizon import messages

from clickos_dashboard.api import chains
from clickos_dashboard import exceptions as our_exceptions

#: Hops that the form of a new chain asks for.
HOPS = 9
_PROTOCOLS = (('', _('Any')), ('tcp', 'TCP'), ('udp', 'UDP'),
              ('icmp', 'ICMP'))
_SIDES = ('source', 'destination')
#: What only the CLI sets; it stays when a rule changes.
_KEPT = ('logical_source_port', 'logical_destination_port', 'l7_parameters')
_PORTS = re.compile(r'(\d{1,5})(?::(\d{1,5}))?', re.ASCII)
_LAST_PORT = 65535


def _ports(text):
    """Return the first and the last port of text; None for no text."""
    if not text:
        return None
    match = _PORTS.fullmatch(text)
    if not match:
        raise django_exc.ValidationError(
            _('Expected a port, or first:last, such as 80 or 8000:8080.'))
    first = int(match[1])
    last = int(match[2] or first)
    if not 1 <= first <= last <= _LAST_PORT:
        raise django_exc.ValidationError(
            _('Expected ports from 1 to %d, the lower first.') % _LAST_PORT)
    return first, last


class PortsField(django_forms.CharField):
    """A port, or a range of ports."""

    def to_python(self, value):
        """Return (first, last), or None."""
        return _ports(super().to_python(value))


class _RuleForm(forms.SelfHandlingForm):
    """The packets that a chain steers; a field without a value selects any.
    """

    protocol = django_forms.ChoiceField(
        label=_('Protocol'), choices=_PROTOCOLS, required=False)
    source = forms.IPField(
        label=_('Source'), required=False, mask=True,
        version=forms.IPv4 | forms.IPv6,
        help_text=_('Address or prefix, such as 10.0.0.0/24.'))
    destination = forms.IPField(
        label=_('Destination'), required=False, mask=True,
        version=forms.IPv4 | forms.IPv6,
        help_text=_('Address or prefix, such as 10.0.0.0/24.'))
    source_port = PortsField(label=_('Source port'), required=False)
    destination_port = PortsField(label=_('Destination port'),
                                  required=False)

    def clean(self):
        """Refuse ports without a protocol, and two families."""
        data = super().clean()
        if (data.get('source_port') or data.get('destination_port')) \
                and data.get('protocol') not in ('tcp', 'udp'):
            self.add_error('protocol', _('Ports need TCP or UDP.'))
        if len({':' in data[side] for side in _SIDES if data.get(side)}) > 1:
            self.add_error('destination', _(
                'Source and destination are of one family, IPv4 or IPv6.'))
        return data


class CreateForm(_RuleForm):
    """Name, packets and hops of a new chain."""

    name = django_forms.CharField(label=_('Name'), max_length=255)
    network = django_forms.ChoiceField(
        label=_('Network'),
        help_text=_('The chain steers packets of this network. Each hop has'
                    ' a port on it.'))
    symmetric = django_forms.BooleanField(
        label=_('Answers return through the hops'), required=False,
        initial=True)
    field_order = ('name', 'network', 'protocol', 'source', 'destination',
                   'source_port', 'destination_port', 'symmetric')

    def __init__(self, request, *args, **kwargs):
        super().__init__(request, *args, **kwargs)
        self.fields['network'].choices = self.initial['networks']
        choices = [('', _('No hop'))] + [
            (vnf.id, vnf.name) for vnf in self.initial['vnfs']]
        for number in range(1, HOPS + 1):
            self.fields[f'hop_{number}'] = django_forms.ChoiceField(
                label=_('Hop %d') % number, choices=choices,
                required=number == 1)

    def clean(self):
        """Refuse a VNF that comes twice."""
        data = super().clean()
        ids = self._hops(data)
        if len(set(ids)) < len(ids):
            raise django_exc.ValidationError(_('A VNF comes twice.'))
        return data

    @staticmethod
    def _hops(data):
        chosen = (data.get(f'hop_{number}') for number in range(1, HOPS + 1))
        return [vnf_id for vnf_id in chosen if vnf_id]

    def handle(self, request, data):
        """Make the chain."""
        vnfs = {vnf.id: vnf for vnf in self.initial['vnfs']}
        try:
            chains.create(request, data['name'], data['network'],
                          [vnfs[vnf_id] for vnf_id in self._hops(data)],
                          _flow(data), data['symmetric'])
        except Exception as exc:
            exceptions.handle(request, _('The chain is not made: %s')
                              % our_exceptions.reason(exc))
            return False
        messages.success(request, _('Created chain "%s".') % data['name'])
        return True


class RuleForm(_RuleForm):
    """A rule of a live chain, with the values that it has now."""

    def __init__(self, request, *args, **kwargs):
        super().__init__(request, *args, **kwargs)
        rule = self.initial['rule']
        self._kept = {key: value for key, value in rule.values.items()
                      if key in _KEPT}
        protocol = rule.values.get('protocol')
        if protocol and protocol not in dict(_PROTOCOLS):
            # Made by the CLI; it stays unless one chooses another.
            self.fields['protocol'].choices = [
                *_PROTOCOLS, (protocol, protocol)]
        for name, value in _fields(rule.values).items():
            self.fields[name].initial = value

    def _family(self, data):
        """Return the family: without an address, that of the rule."""
        has_address = any(data[side] for side in _SIDES)
        return 'IPv4' if has_address else self.initial['rule'].values.get(
            'ethertype', 'IPv4')

    def handle(self, request, data):
        """Replace the rule."""
        chain, rule = self.initial['chain'], self.initial['rule']
        flow = {'ethertype': self._family(data), **_flow(data), **self._kept}
        if flow == {'ethertype': 'IPv4', **rule.values}:
            messages.info(request, _('Every value is as before.'))
            return True
        try:
            chains.change_rule(request, chain.id, rule.id, flow)
        except Exception as exc:
            exceptions.handle(request,
                              _('The rule is not changed: %s')
                              % our_exceptions.reason(exc))
            return False
        messages.success(request, _('Changed the rule of "%s".')
                         % chain.name)
        return True


def _fields(values):
    """Return the form's texts of a flow classifier."""
    found = {'protocol': values.get('protocol')}
    for side in _SIDES:
        first, last = (values.get(f'{side}_port_range_{end}')
                       for end in ('min', 'max'))
        found[side] = values.get(f'{side}_ip_prefix')
        found[f'{side}_port'] = first if last in (None, first) \
            else f'{first}:{last}'
    return {name: value for name, value in found.items()
            if value is not None}


def _flow(data):
    """Return the values of a flow classifier."""
    values = {}
    if data['protocol']:
        values['protocol'] = data['protocol']
    for side in _SIDES:
        if data[side]:
            values[f'{side}_ip_prefix'] = data[side]
            if ':' in data[side]:
                values['ethertype'] = 'IPv6'
        if data[f'{side}_port']:
            first, last = data[f'{side}_port']
            values.update({f'{side}_port_range_min': first,
                           f'{side}_port_range_max': last})
    return values


class InsertForm(forms.SelfHandlingForm):
    """A VNF, and its place among the hops of a chain."""

    vnf = django_forms.ChoiceField(label=_('VNF'))
    place = django_forms.TypedChoiceField(label=_('Place'), coerce=int)

    def __init__(self, request, *args, **kwargs):
        super().__init__(request, *args, **kwargs)
        self.fields['vnf'].choices = [
            (vnf.id, vnf.name) for vnf in self.initial['vnfs']]
        hops = self.initial['chain'].hops
        self.fields['place'].choices = [(0, _('First'))] + [
            (place, _('After %s') % hop.name)
            for place, hop in enumerate(hops, 1)]
        self.fields['place'].initial = len(hops)

    def handle(self, request, data):
        """Insert the hop."""
        vnf = next(vnf for vnf in self.initial['vnfs']
                   if vnf.id == data['vnf'])
        chain = self.initial['chain']
        try:
            chains.insert(request, chain.id, vnf, data['place'])
        except Exception as exc:
            exceptions.handle(request,
                              _('The hop is not inserted: %s')
                              % our_exceptions.reason(exc))
            return False
        messages.success(request, _('Inserted "%(vnf)s" into "%(chain)s".')
                         % {'vnf': vnf.name, 'chain': chain.name})
        return True
