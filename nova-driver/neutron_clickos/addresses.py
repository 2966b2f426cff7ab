# SPDX-License-Identifier: Apache-2.0
"""The source addresses a port may send from."""

import ipaddress


def allowed(port):
    """List the sources that the switch lets through.

    The switch itself adds the IPv6 link-local address of each MAC.

    :param port: Neutron's port, a dict.
    :returns: list of {'mac', 'ip'}; ip is a CIDR
    """
    mac = port['mac_address']
    pairs = [(mac, fixed['ip_address']) for fixed in port['fixed_ips']]
    pairs += [(pair.get('mac_address') or mac, pair['ip_address'])
              for pair in port.get('allowed_address_pairs') or ()]
    return [{'mac': mac, 'ip': str(ipaddress.ip_network(ip, strict=False))}
            for mac, ip in pairs]
