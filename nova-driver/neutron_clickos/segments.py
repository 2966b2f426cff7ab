# SPDX-License-Identifier: Apache-2.0
"""Numbers of networks at the switch of a host (docs/adr/0054).

::

    1 to 4094            VLAN id of a physical network
    4095                 the flat network of a physical network
    4097 to 16781311     4096 + VXLAN network identifier
    2^28 to 2^29 - 1     2^28 + the first 28 bits of a local network's id
"""

from neutron_lib import constants

FLAT = 4095
_VXLAN = 4096
_LOCAL = 1 << 28
#: Digits of a local network's id that its number holds.
LOCAL_DIGITS = 7

#: Types of networks that ClickOS hosts carry.
TYPES = (constants.TYPE_VLAN, constants.TYPE_FLAT, constants.TYPE_VXLAN,
         constants.TYPE_LOCAL)
#: Of these, those that belong to a physical network.
PHYSICAL = (constants.TYPE_VLAN, constants.TYPE_FLAT)


def switch(network_type, physical_network, switches, tunnel_switch):
    """Return the switch of a host that carries a network, or None.

    :param switches: switch by physical network
    :param tunnel_switch: that of networks without a physical one
    """
    if network_type in PHYSICAL:
        return switches.get(physical_network)
    return tunnel_switch if network_type in TYPES else None


def number(network_type, segmentation_id, network_id):
    """Return the number of a network at a switch.

    Two networks of one switch have different numbers; of local networks only
    those that differ in the first :data:`LOCAL_DIGITS` digits of their ids.

    :param network_type: of :data:`TYPES`
    """
    if network_type == constants.TYPE_FLAT:
        return FLAT
    if network_type == constants.TYPE_LOCAL:
        return _LOCAL + int(network_id[:LOCAL_DIGITS], 16)
    first = _VXLAN if network_type == constants.TYPE_VXLAN else 0
    return first + segmentation_id
