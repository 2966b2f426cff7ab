# SPDX-License-Identifier: Apache-2.0
"""The generated define statement a template's variables come from.

A template refers to the connection point `left` by $LEFT_VIF, $LEFT_MAC,
$LEFT_IP, $LEFT_NET, $LEFT_GW and $LEFT_MTU, and to its define properties by
their names. Nothing is ever substituted into the template's text.
"""

import dataclasses

from tacker_clickos.clickgen import writes


@dataclasses.dataclass(frozen=True)
class Interface:
    """A connection point as Neutron made it; gateway may be None."""

    cp: str
    mac: str
    ip: str
    net: str
    gateway: str
    mtu: int


def prefix(cp):
    """Return what the variables of a connection point start with."""
    return cp.upper().replace('-', '_') + '_'


def render(configuration, interfaces, values):
    """Return the define statement, to be put before the template's text.

    It ends with a line directive, so that the guest's messages name file,
    line and column of the package's file.

    :param interfaces: Interface by vif number
    :param values: checked property values by name
    """
    pairs = []
    for vif, interface in enumerate(interfaces):
        pairs += _interface(vif, interface)
    pairs += [(prop.define, writes.encode(values[name]))
              for name, prop in configuration.properties.items()
              if prop.define]
    if not pairs:
        return ''
    return 'define(%s);\n# 1 "%s"\n' % (
        ',\n       '.join('$%s %s' % pair for pair in pairs),
        configuration.file_name)


def _interface(vif, interface):
    name = prefix(interface.cp)
    return [(name + 'VIF', vif),
            (name + 'MAC', interface.mac),
            (name + 'IP', interface.ip),
            (name + 'NET', interface.net),
            (name + 'GW', interface.gateway or '0.0.0.0'),  # nosec B104
            (name + 'MTU', interface.mtu)]
