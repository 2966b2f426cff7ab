# SPDX-License-Identifier: Apache-2.0
"""network_info to vifs."""

from nova_clickos import exception
from nova_clickos import vif
from tests.unit.nova_clickos import base


class FromNetworkInfoTest(base.TestCase):

    def refused(self, nic, *parts):
        error = self.assertRaises(
            exception.GuestNotStarted, vif.from_network_info,
            base.network_info(nic))
        for part in (base.PORT,) + parts:
            self.assertIn(part, error.format_message())

    def test_all_keys(self):
        self.conf.config(group='clickos', ring_slots=64)
        self.assertEqual(
            [{'devid': 0, 'mac': 'fa:16:3e:00:00:01', 'switch': 'vale0',
              'port': 'p01234567-89', 'segment': 101,
              'allowed': [{'mac': 'fa:16:3e:00:00:01', 'ip': '10.0.1.5/32'}],
              'port_security': True, 'mtu': 1500, 'slots': 64,
              'port_id': base.PORT, 'link': 'up'}],
            vif.from_network_info(base.network_info()))

    def test_order_numbers_the_devices(self):
        found = vif.from_network_info(base.network_info(
            base.vif(mtu=1400), base.vif(mtu=9000)))
        self.assertEqual([(0, 1400), (1, 9000)],
                         [(v['devid'], v['mtu']) for v in found])

    def test_ports_of_a_project_have_its_number(self):
        nic = base.vif()
        nic['details']['vale_owner'] = 77
        found = vif.from_network_info(base.network_info(nic))
        self.assertEqual(77, found[0]['owner'])

    def test_a_disabled_port_starts_with_its_link_down(self):
        nic = base.vif()
        nic['details']['vale_link_up'] = False
        found = vif.from_network_info(base.network_info(nic))
        self.assertEqual('down', found[0]['link'])

    def test_a_port_of_an_older_release_starts_with_its_link_up(self):
        nic = base.vif()
        del nic['details']['vale_link_up']
        found = vif.from_network_info(base.network_info(nic))
        self.assertEqual('up', found[0]['link'])

    def test_none(self):
        self.assertEqual([], vif.from_network_info(None))

    def test_mtu_unknown(self):
        found = vif.from_network_info(base.network_info(base.vif(mtu=None)))
        self.assertEqual(1500, found[0]['mtu'])

    def test_mtu_too_large(self):
        self.refused(base.vif(mtu=9001), 'MTU 9001', '9000')

    def test_other_type(self):
        for other in ('ovs', 'unbound', None):
            self.refused(base.vif(type=other), str(other),
                         'mechanism driver')

    def test_a_failed_binding_says_why(self):
        for meta, values, reason in (
                ({}, {'vnic_type': 'direct'}, 'its vnic_type is "direct"'),
                ({'mtu': 9001, 'tunneled': True}, {}, 'MTU 9001'),
                ({'tunneled': True}, {}, 'is a tunnel, and the host carries '
                                         'VXLAN only'),
                ({'physical_network': 'secret'}, {}, 'its physical network'),
                ({}, {}, 'agent is not alive')):
            port = base.vif(type='binding_failed', **values)
            port['network']['meta'].update(meta)
            self.refused(port, base.PORT, reason)

    def test_a_failed_binding_names_no_part_of_the_cloud_and_fits(self):
        port = base.vif(type='binding_failed')
        port['network']['meta'].update(physical_network='secret')
        error = self.assertRaises(
            exception.GuestNotStarted, vif.from_network_info,
            base.network_info(port))
        self.assertNotIn('secret', error.format_message())
        self.assertFalse(error.format_message().endswith('...'))

    def test_details_incomplete(self):
        self.refused(base.vif(details={'vale_switch': 'vale0'}), 'vale_port')
