# SPDX-License-Identifier: Apache-2.0
"""Variables of a configuration for the ports of its server.

A server without a VNFD gets its addresses from Neutron after its user_data
was written. Its configuration refers to them as $PORT0_IP, in Nova's order of
the ports. Nothing is substituted into the text: a define statement with the
variables that the text has stands before it.
"""

import dataclasses
import re

from clickos_client import vnf
import netaddr

from nova_clickos import exception
from nova_clickos import vif as vifs

#: An error has the name, so names have a bound.
_NAME = r'(PORT(\d{1,2})_([A-Z]{1,16}6?))'
_VARIABLE = re.compile(rf'\$(?:{_NAME}\b|\{{{_NAME}\}})', re.ASCII)
#: A statement that may define such a variable. Each byte of a text is in one
#: match only: the text may have a megabyte, and re stops all other threads.
_DEFINE = re.compile(r'\bdefine\s*\(([^;]*)')
_OWN = re.compile(r'\$PORT\d')


def define(configuration, network_info, metadata=None):
    """Return the configuration with the variables of its server's ports.

    Tacker names the connection points of a VNF's guest, so such a
    configuration stays as it is, as does one that defines the variables.

    :param configuration: document.Configuration
    :param network_info: NetworkInfo or None
    :param metadata: of the server
    :raises: GuestNotStarted if the server has no such port or address
    """
    text = configuration.config
    if vnf.SERVER_KEY in (metadata or {}) or any(
            _OWN.search(found[1]) for found in _DEFINE.finditer(text)):
        return configuration
    names = {}
    for found in _VARIABLE.finditer(text):
        name = found[1] or found[4]
        names[name] = (int(found[2] or found[5]), found[3] or found[6])
    if not names:
        return configuration
    ports = list(network_info or ())
    pairs = ['$%s %s' % (name, _value(name, ports, *place))
             for name, place in sorted(names.items())]
    return dataclasses.replace(
        configuration, config='define(%s);\n# 1 "%s"\n%s' % (
            ',\n       '.join(pairs), configuration.config_name, text))


def substitute(text, network_info):
    """Return a kernel's command line with its variables replaced.

    :raises: GuestNotStarted if the server has no such port or address
    """
    ports = list(network_info or ())

    def value(found):
        return str(_value(found[1] or found[4], ports,
                          int(found[2] or found[5]), found[3] or found[6]))
    return _VARIABLE.sub(value, text)


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


def _net(subnet, version):
    length = netaddr.IPNetwork(subnet['cidr']).prefixlen
    return '%s/%d' % (subnet['ips'][0]['address'], length)


def _gateway(subnet, version):
    gateway = (subnet['gateway'] or {}).get('address')
    return gateway or {4: '0.0.0.0', 6: '::'}[version]    # nosec B104


_READERS = {'IP': lambda subnet, version: subnet['ips'][0]['address'],
            'NET': _net, 'GW': _gateway}


def _bad(name, reason):
    return exception.GuestNotStarted(reason='$%s: %s' % (name, reason))
