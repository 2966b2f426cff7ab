# SPDX-License-Identifier: Apache-2.0
"""The generated define statement a template's variables come from.

A template refers to the connection point `left` by variables such as
$LEFT_VIF and $LEFT_IP, which _interface lists. Its define properties have
the names that the descriptor gives. Nothing is ever substituted into the
template's text.
"""

import dataclasses
import re

from tacker_clickos.clickgen import writes
from tacker_clickos import exception

#: What a connection point without an address of a version has.
_NONE = {4: ('0.0.0.0', '0.0.0.0/32'), 6: ('::', '::/128')}  # nosec B104


@dataclasses.dataclass(frozen=True)
class Interface:
    """A connection point as Neutron made it.

    Address and network are None without an address of this version. A
    gateway may be None. ips and ip6s are all addresses, those first. A dual
    one may lack addresses of a version that the configuration refers to.
    """

    cp: str
    mac: str
    ip: str
    net: str
    gateway: str
    mtu: int
    ip6: str = None
    net6: str = None
    gateway6: str = None
    ips: tuple = ()
    ip6s: tuple = ()
    is_dual: bool = False


def prefix(cp):
    """Return what the variables of a connection point start with."""
    return cp.upper().replace('-', '_') + '_'


def render(configuration, interfaces, values, statements=''):
    """Return the define statement, to be put before the template's text.

    It ends with a line directive, so that the guest's messages name file,
    line and column of the package's file.

    :param interfaces: Interface by vif number
    :param values: checked property values by name
    :param statements: Click statements, which stand behind the definitions
    """
    pairs = []
    for vif, interface in enumerate(interfaces):
        pairs += _interface(vif, interface, configuration.text)
    for name, prop in configuration.properties.items():
        if prop.define:
            pairs += _property(prop, values[name], configuration.text)
    if not pairs:
        return ''
    return 'define(%s);\n%s# 1 "%s"\n' % (
        ',\n       '.join('$%s %s' % pair for pair in pairs), statements,
        configuration.file_name)


def _property(prop, value, text):
    """Return the variables; the ends of a port range if text has them."""
    found = [(prop.define, writes.argument(prop, value))]
    if prop.type == 'port_range':
        ends = zip(('_FIRST', '_LAST'), value.split('-'))
        found += [(prop.define + end, port) for end, port in ends
                  if _has(text, prop.define + end)]
    return found


def _interface(vif, interface, text):
    """Return the variables; of IPv6 and of lists only those that text has."""
    name = prefix(interface.cp)
    found = [(name + 'VIF', vif), (name + 'MAC', interface.mac)]
    needed = '' if interface.is_dual else text
    found += _addresses(name, needed, 4, interface.ip, interface.net,
                        interface.gateway)
    found.append((name + 'MTU', interface.mtu))
    more = _addresses(name, needed, 6, interface.ip6, interface.net6,
                      interface.gateway6)
    more += [(name + 'IPS', ' '.join(interface.ips or _NONE[4][:1])),
             (name + 'IP6S', ' '.join(interface.ip6s or _NONE[6][:1]))]
    return found + [pair for pair in more if _has(text, pair[0])]


def _addresses(name, needed, version, ip, net, gateway):
    """Return the variables of an IP version.

    :param needed: the text whose variables must have an address
    :raises: ResourceNotUsable if the text needs an address that is missing
    """
    end = '' if version == 4 else '6'
    if ip is None and (_has(needed, name + 'IP' + end)
                       or _has(needed, name + 'NET' + end)):
        raise exception.ResourceNotUsable(
            kind='connection point', name=name[:-1].lower(),
            reason='has no IPv%d address; give its network a subnet'
            % version)
    none, no_net = _NONE[version]
    return [(name + 'IP' + end, ip or none),
            (name + 'NET' + end, net or no_net),
            (name + 'GW' + end, gateway or none)]


def _has(text, variable):
    """Return whether a configuration refers to a variable."""
    return re.search(r'\$(?:%s\b|\{%s\})' % (variable, variable),
                     text) is not None
