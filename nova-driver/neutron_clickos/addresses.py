# SPDX-License-Identifier: Apache-2.0
"""The source addresses a port may send from."""

import ipaddress

import netaddr
from neutron_lib import constants


def allowed(port):
    """What the switch's anti-spoofing lets through.

    :param port: Neutron's port, a dict.
    :returns: list of {'mac', 'ip'}; ip is a CIDR
    """
    mac = port['mac_address']
    pairs = [(mac, fixed['ip_address']) for fixed in port['fixed_ips']]
    pairs += [(pair.get('mac_address') or mac, pair['ip_address'])
              for pair in port.get('allowed_address_pairs') or ()]
    entries = [(mac, ipaddress.ip_network(ip, strict=False))
               for mac, ip in pairs]
    entries += [(mac, _link_local(mac)) for mac in _macs_with_ipv6(entries)]
    return [{'mac': mac, 'ip': str(net)} for mac, net in entries]


def _macs_with_ipv6(entries):
    """IPv6 works only for a sender that has its link-local address, too."""
    return sorted({mac for mac, net in entries if net.version == 6})


def _link_local(mac):
    address = netaddr.EUI(mac).ipv6_link_local()
    return ipaddress.ip_network('%s/%d' % (address, constants.IPv6_BITS))
