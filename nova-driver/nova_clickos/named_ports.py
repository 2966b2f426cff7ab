# SPDX-License-Identifier: Apache-2.0
"""Variables of a configuration for the ports of its server.

A server without a VNFD gets its addresses from Neutron after its user_data
was written. Its configuration refers to them as $PORT0_IP, in Nova's order of
the ports, or as $PORT_left_IP, by the tag that the tenant gave to a port.
Nothing is substituted into the text: a define statement with the variables
that the text has stands before it.
"""

import dataclasses
import re

from clickos_client import vnf
import netaddr

from nova_clickos import exception
from nova_clickos import vif as vifs

#: An error has the name, so names have a bound. Nova's tags have 60 characters
#: at most, and others with a tag's form are variables of the configuration.
_TAGGED = r'PORT_(\w{1,60})_(VIF|MAC|MTU|(?:IP|NET|GW)6?)'
_NAME = rf'(PORT(\d{{1,2}})_([A-Z]{{1,16}}6?)|{_TAGGED})'
_VARIABLE = re.compile(rf'\$(?:{_NAME}\b|\{{{_NAME}\}})', re.ASCII)
#: A statement that may define such a variable. Each byte of a text is in one
#: match only: the text may have a megabyte, and re stops all other threads.
_DEFINE = re.compile(r'\bdefine\s*\(([^;]*)')
_OWN = re.compile(r'\$PORT\d')
_OWN_TAGGED = re.compile(rf'(?:^|,)\s*\$({_TAGGED})\b', re.ASCII)


def define(configuration, network_info, metadata=None, tags=None):
    """Return the configuration with the variables of its server's ports.

    Tacker names the connection points of a VNF's guest, so such a
    configuration stays as it is, as does one that defines variables of
    numbered ports. A variable of a tag that it defines is its own.

    :param configuration: document.Configuration
    :param network_info: NetworkInfo or None
    :param metadata: of the server
    :param tags: tag by the id of the port
    :raises: GuestNotStarted if the server has no such port or address
    """
    text = configuration.config
    definitions = [found[1] for found in _DEFINE.finditer(text)]
    if vnf.SERVER_KEY in (metadata or {}) or any(
            map(_OWN.search, definitions)):
        return configuration
    names = dict(map(_named, _VARIABLE.finditer(text)))
    for each in definitions:
        for found in _OWN_TAGGED.finditer(each):
            names.pop(found[1], None)
    if not names:
        return configuration
    ports = _Ports(network_info, tags)
    pairs = ['$%s %s' % (name, ports.value(name, *place))
             for name, place in sorted(names.items())]
    return dataclasses.replace(
        configuration, config='define(%s);\n# 1 "%s"\n%s' % (
            ',\n       '.join(pairs), configuration.config_name, text))


def substitute(text, network_info, tags=None):
    """Return a kernel's command line with its variables replaced.

    The parameters are those of :func:`define`.

    :raises: GuestNotStarted if the server has no such port or address
    """
    ports = _Ports(network_info, tags)

    def value(found):
        name, place = _named(found)
        return str(ports.value(name, *place))
    return _VARIABLE.sub(value, text)


def _named(found):
    """Return the name of a variable, and its number, tag and kind."""
    name, number, kind, tag, tagged = found.groups()[
        slice(None, 5) if found[1] else slice(5, None)]
    return name, (number, tag, kind or tagged)


class _Ports:
    """The ports of a server, by number and by tag."""

    def __init__(self, network_info, tags):
        self._ports = list(network_info or ())
        self._tags = tags or {}

    def value(self, name, number, tag, kind):
        """Return what a variable stands for."""
        number = self._number(name, tag) if number is None else int(number)
        return _value(name, self._ports, number, kind)

    def _number(self, name, tag):
        found = [number for number, port in enumerate(self._ports)
                 if self._tags.get(port['id']) == tag]
        if len(found) == 1:     # Nova accepts a tag twice
            return found[0]
        raise _bad(name, '%s of the server has the tag "%s"' % (
            'more than one port' if found else 'no port', tag))


def _value(name, ports, number, kind):
    if number >= len(ports):
        raise _bad(name, 'the server has %d ports' % len(ports))
    port = ports[number]
    plain = {'VIF': number, 'MAC': port['address'],
             'MTU': port['network'].get_meta('mtu') or vifs.DEFAULT_MTU}
    if kind in plain:
        return plain[kind]
    version = 6 if kind.endswith('6') else 4
    reader = _READERS.get(kind.rstrip('6'))
    if reader is None:
        raise _bad(name, 'expected one of %s'
                   % ', '.join([*plain, *_READERS,
                                *(f'{each}6' for each in _READERS)]))
    for subnet in port['network']['subnets']:
        if subnet['version'] == version and subnet['ips']:
            return reader(subnet, version)
    raise _bad(name, 'port %s has no IPv%d address' % (port['id'], version))


def addresses(port):
    """List the addresses of a port, with the lengths of their prefixes."""
    return ['%s/%d' % (ip['address'], _length(subnet))
            for subnet in port['network']['subnets'] for ip in subnet['ips']]


def _net(subnet, version):
    return '%s/%d' % (subnet['ips'][0]['address'], _length(subnet))


def _length(subnet):
    return netaddr.IPNetwork(subnet['cidr']).prefixlen


def _gateway(subnet, version):
    gateway = (subnet['gateway'] or {}).get('address')
    return gateway or {4: '0.0.0.0', 6: '::'}[version]    # nosec B104


_READERS = {'IP': lambda subnet, version: subnet['ips'][0]['address'],
            'NET': _net, 'GW': _gateway}


def _bad(name, reason):
    return exception.GuestNotStarted(reason='$%s: %s' % (name, reason))
