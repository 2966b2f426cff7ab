# SPDX-License-Identifier: Apache-2.0
"""Which sources a port may send from."""

import testtools

from neutron_clickos import addresses

MAC = 'fa:16:3e:00:00:01'
OTHER = 'fa:16:3e:00:00:02'


def port(*ips, **values):
    return dict({'mac_address': MAC,
                 'fixed_ips': [{'subnet_id': 's', 'ip_address': ip}
                               for ip in ips]}, **values)


class AllowedTest(testtools.TestCase):

    def check(self, expected, port):
        self.assertEqual(expected, [(e['mac'], e['ip'])
                                    for e in addresses.allowed(port)])

    def test_fixed_ips(self):
        self.check([(MAC, '10.0.1.5/32'), (MAC, '10.0.2.5/32')],
                   port('10.0.1.5', '10.0.2.5'))

    def test_no_address(self):
        self.check([], port())

    def test_ipv6(self):
        self.check([(MAC, '2001:db8::5/128')], port('2001:db8::5'))

    def test_address_pairs(self):
        pairs = [{'ip_address': '10.9.0.0/16', 'mac_address': OTHER},
                 {'ip_address': '10.0.1.7', 'mac_address': MAC},
                 {'ip_address': '0.0.0.0/0'},
                 {'ip_address': '10.8.0.3/24', 'mac_address': None}]
        self.check([(MAC, '10.0.1.5/32'), (OTHER, '10.9.0.0/16'),
                    (MAC, '10.0.1.7/32'), (MAC, '0.0.0.0/0'),
                    (MAC, '10.8.0.0/24')],
                   port('10.0.1.5', allowed_address_pairs=pairs))

    def test_no_pairs(self):
        for nothing in (None, []):
            self.check([], port(allowed_address_pairs=nothing))
