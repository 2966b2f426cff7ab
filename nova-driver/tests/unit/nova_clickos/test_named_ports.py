# SPDX-License-Identifier: Apache-2.0
"""Variables for the ports of a server without a VNFD."""

import time

from clickos_client import document
from clickos_client import limits
from clickos_client import vnf
from nova.network import model

from nova_clickos import exception
from nova_clickos import named_ports
from tests.unit.nova_clickos import base

OTHER = '89abcdef-89ab-4def-8123-456789abcdef'


def subnet(cidr, *ips, gateway=None):
    return model.Subnet(
        cidr=cidr, gateway=gateway and model.IP(address=gateway),
        ips=[model.FixedIP(address=ip) for ip in ips])


def port(*subnets, **values):
    found = base.vif(**values)
    found['network']['subnets'] = list(subnets)
    return found


PORTS = base.network_info(
    port(subnet('10.0.1.0/24', '10.0.1.5', '10.0.1.6', gateway='10.0.1.1'),
         subnet('2001:db8::/64', '2001:db8::5')),
    port(subnet('192.0.2.0/28', '192.0.2.3'), mtu=1400))


class NamedPortsTest(base.TestCase):

    def defined(self, text, ports=PORTS, metadata=None, tags=None):
        return named_ports.define(
            document.Configuration(text, 'r.click', ()), ports,
            metadata, tags).config

    def test_each_variable(self):
        for name, value in (
                ('PORT0_IP', '10.0.1.5'), ('PORT0_NET', '10.0.1.5/24'),
                ('PORT0_GW', '10.0.1.1'), ('PORT0_IP6', '2001:db8::5'),
                ('PORT0_NET6', '2001:db8::5/64'), ('PORT0_GW6', '::'),
                ('PORT0_VIF', '0'), ('PORT0_MAC', 'fa:16:3e:00:00:01'),
                ('PORT1_IP', '192.0.2.3'), ('PORT1_GW', '0.0.0.0'),
                ('PORT1_VIF', '1'), ('PORT0_MTU', '1500'),
                ('PORT1_MTU', '1400')):
            for text in (f'x :: A(${name});', f'x :: A(${{{name}}}x);'):
                self.assertEqual(
                    f'define(${name} {value});\n# 1 "r.click"\n{text}',
                    self.defined(text))

    def test_each_variable_once_and_the_text_unchanged(self):
        text = 'A($PORT0_IP, $PORT1_IP, $PORT0_IP) -> B;\n'
        self.assertEqual(
            'define($PORT0_IP 10.0.1.5,\n       $PORT1_IP 192.0.2.3);\n'
            '# 1 "r.click"\n' + text, self.defined(text))
        self.assertEqual(text, document.without_ports(self.defined(text)))

    def test_a_port_has_a_name_by_its_tag(self):
        """Tags may look like the end of a variable."""
        ports = base.network_info(PORTS[0],
                                  port(subnet('192.0.2.0/28', '192.0.2.3'),
                                       port_id='p1'))
        for tag in ('right', '1', 'to_IP', '_', 'a' * 60):
            for text in (f'A($PORT_{tag}_IP);', f'A(${{PORT_{tag}_IP}}x);'):
                self.assertEqual(
                    f'define($PORT_{tag}_IP 192.0.2.3);\n# 1 "r.click"\n'
                    + text, self.defined(text, ports, tags={'p1': tag}))
        text = 'F($PORT_r_VIF, $PORT_r_NET, $PORT0_VIF, $PORT_r_MTU);'
        found = self.defined(text, ports, tags={'p1': 'r'})
        for pair in ('$PORT_r_VIF 1', '$PORT_r_NET 192.0.2.3/28',
                     '$PORT0_VIF 0', '$PORT_r_MTU 1500'):
            self.assertIn(pair, found)
        self.assertEqual(text, document.without_ports(found))
        found = self.defined('F($PORT_r_VIF);', ports, tags={'p1': 'r'})
        self.assertEqual('F($PORT_r_VIF);', document.without_ports(found))

    def test_a_tag_of_two_ports_names_none(self):
        """Else a firewall could have inside and outside exchanged."""
        ports = base.network_info(*PORTS, port(port_id='p2'))
        tags = {base.PORT: 'left', 'p2': 'right'}
        self.assertIn('VIF 2', self.defined('$PORT_right_VIF', ports,
                                            tags=tags))
        error = self.assertRaises(exception.GuestNotStarted, self.defined,
                                  '$PORT_left_VIF', ports, tags=tags)
        self.assertIn('more than one port of the server has the tag "left"',
                      str(error))

    def test_a_variable_of_a_tag_may_be_the_configurations_own(self):
        own = 'define($A 1, $PORT_r_IP 1.2.3.4); A($PORT_r_IP'
        self.assertEqual(own, self.defined(own))
        self.assertEqual(f'define($PORT0_VIF 0);\n# 1 "r.click"\n{own},'
                         ' $PORT0_VIF);', self.defined(own + ', $PORT0_VIF);'))

    def test_a_configuration_that_needs_none_stays(self):
        for text in ('Idle;', 'A($PORTS_IP);', 'A($PORT_IP, $IP);',
                     'A($PORT_left_RATE, $PORT__IP, ${PORT_a-b_IP});',
                     'define($PORT0_IP 1.2.3.4); A($PORT0_IP);'):
            self.assertEqual(text, self.defined(text))
        text = 'A($PORT0_IP);'
        self.assertEqual(text, self.defined(text,
                                            metadata={vnf.SERVER_KEY: 'x'}))

    def test_a_long_text_takes_no_longer_for_its_definitions(self):
        """A state has a megabyte, and nova-compute serves all tenants."""
        for word in ('define(', 'define (', 'define($PORT', '$PORT0_',
                     '${PORT0_', 'define' + ' ' * 32, '$PORT_A_',
                     'define($PORT_' + 'A_IP' * 32, 'define(' + ',   ' * 99):
            text = word * (limits.CONFIG_BYTES // len(word))
            begun_s = time.process_time()
            self.assertEqual(text, self.defined(text))
            self.assertLess(time.process_time() - begun_s, 3, word)

    def test_an_error_has_no_long_name(self):
        text = 'A($PORT0_%s);' % ('A' * 100000)
        self.assertEqual(text, self.defined(text))

    def test_what_the_server_has_not_is_named(self):
        for text, words in (
                ('A($PORT2_IP)', '$PORT2_IP: the server has 2 ports'),
                ('A($PORT1_IP6)', 'has no IPv6 address'),
                ('A($PORT_left_IP)', '$PORT_left_IP: no port of the server'
                                     ' has the tag "left"'),
                ('A($PORT0_NAME)', '$PORT0_NAME: expected one of VIF, MAC')):
            error = self.assertRaises(exception.GuestNotStarted,
                                      self.defined, text)
            self.assertIn(words, str(error))
        self.assertRaises(exception.GuestNotStarted, self.defined,
                          'A($PORT0_IP)', None)


class StartTest(base.DriverTestCase):

    def test_a_server_boots_with_its_addresses(self):
        server = base.instance(user_data=base.b64('A($PORT0_IP);'))
        self.spawn(server, base.network_info(PORTS[0]))
        verb, args = next(each for each in self.cosmosd.requests
                          if each[0] == 'create')
        self.assertEqual(
            'define($PORT0_IP 10.0.1.5);\n# 1 "user_data"\nA($PORT0_IP);',
            args['config'].strip())

    def test_a_server_boots_with_the_tags_of_its_ports(self):
        """Device metadata lists them, too, until a start without any."""
        self.virtual_interfaces.return_value = [
            base.tagged('left'), base.tagged(None, OTHER)]
        server = base.instance(user_data=base.b64('A($PORT_left_MAC);'))
        self.spawn(server)
        self.assertIn('define($PORT_left_MAC fa:16:3e:00:00:01);',
                      self.cosmosd.args('create')['config'])
        device, = server.device_metadata.devices
        self.assertEqual(('fa:16:3e:00:00:01', ['left']),
                         (device.mac, device.tags))
        self.virtual_interfaces.return_value = []
        server.user_data = base.b64('Idle;')
        self.spawn(server)
        self.assertIsNone(server.device_metadata)
