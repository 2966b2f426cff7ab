# SPDX-License-Identifier: Apache-2.0
"""Addresses and networks of connection points, of both families.

The fields check what is typed; Neutron checks it again.
"""

import ipaddress
import re

from django import forms
from django.utils.translation import gettext_lazy as _

_APART = re.compile(r'[\s,]+')
_MAX_CHARACTERS = 255
#: A host has its address by its MAC there, so Neutron takes no other one.
_AUTOMATIC = ('slaac', 'dhcpv6-stateless')


class _Several(forms.CharField):
    """Texts with commas or spaces between them.

    The clean value is a list in the plain form of each.
    """

    kind = expected = None

    def __init__(self, **options):
        super().__init__(max_length=_MAX_CHARACTERS, **options)
        # fields.js checks the value as it is typed.
        self.widget.attrs['data-clickos-type'] = self.kind

    def clean(self, value):
        """Return the list."""
        found = []
        for text in filter(None, _APART.split(super().clean(value))):
            try:
                each = self.parse(text)
            except ValueError:
                raise forms.ValidationError(
                    _('%(text)s: expected %(expected)s'),
                    params={'text': text, 'expected': self.expected})
            if each in found:
                raise forms.ValidationError(_('%(each)s is given twice'),
                                            params={'each': each})
            found.append(each)
        return self.whole(found)

    def parse(self, text):
        """Return what a text says, or raise ValueError."""
        raise NotImplementedError

    def whole(self, found):
        """Judge all together; return texts."""
        return [str(each) for each in found]


class Addresses(_Several):
    """Fixed addresses of a port."""

    kind = 'addresses'
    expected = _('an address such as 10.0.0.5 or 2001:db8::5')

    def parse(self, text):
        """Return the address; a port has no other kinds."""
        found = ipaddress.ip_address(text)
        if (getattr(found, 'scope_id', None) or found.is_multicast
                or found.is_unspecified or found.is_loopback
                or found.is_link_local):
            raise ValueError
        return found


class Prefixes(_Several):
    """Networks of a new network, one of each family."""

    kind = 'prefixes'
    expected = _('a network such as 10.20.0.0/24 or 2001:db8::/64')

    def parse(self, text):
        """Return the network; it has room for ports."""
        found = ipaddress.ip_network(text if '/' in text else '')
        if (found.is_multicast or found.is_loopback or found.is_link_local
                or found.num_addresses < 4):
            raise ValueError
        return found

    def whole(self, found):
        """Refuse a second network of a family."""
        families = [each.version for each in found]
        if len(set(families)) < len(families):
            raise forms.ValidationError(_(
                'A new network takes one network of each family.'))
        return super().whole(found)


def of_network(network):
    """Return a text with a network's name and its subnets."""
    subnets = ', '.join(sorted((each.cidr for each in network.subnets),
                               key=lambda cidr: (':' in cidr, cidr)))
    return f'{network.name_or_id} ({subnets or _("no subnet")})'


def check(address, subnets):
    """Refuse an address that no port of a network can have.

    :param address: as text
    :param subnets: Neutron's, of the network
    :raises ValidationError: that names the address
    """
    found = ipaddress.ip_address(address)
    home = next((each for each in subnets
                 if found in ipaddress.ip_network(each.cidr)), None)
    if home is None:
        raise forms.ValidationError(
            _('%(address)s is in no subnet of the network; it has:'
              ' %(subnets)s'), params={
                'address': address, 'subnets': ', '.join(
                    each.cidr for each in subnets) or _('none')})
    if getattr(home, 'ipv6_address_mode', None) in _AUTOMATIC:
        raise forms.ValidationError(
            _('%(address)s: ports in %(cidr)s have automatic addresses only'),
            params={'address': address, 'cidr': home.cidr})
    if found in _reserved(ipaddress.ip_network(home.cidr)):
        raise forms.ValidationError(
            _('%(address)s is not an address for a port of %(cidr)s'),
            params={'address': address, 'cidr': home.cidr})


def _reserved(network):
    """Return the addresses that no port has; a VNF may be the gateway."""
    if network.num_addresses <= 2:
        return ()
    if network.version == 6:
        return (network.network_address,)
    return network.network_address, network.broadcast_address
