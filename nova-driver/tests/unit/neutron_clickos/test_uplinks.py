# SPDX-License-Identifier: Apache-2.0
"""The networks of hosts, from Neutron's tables in memory."""

import fixtures
from neutron.db.migration.models import head
from neutron_lib.db import api as db_api
from oslo_config import cfg
from oslo_db import options as db_options
from oslo_serialization import jsonutils
from oslo_utils import timeutils
from oslo_utils import uuidutils
import testtools

from neutron_clickos import guards
from neutron_clickos import port_rpc
from neutron_clickos import segments
from neutron_clickos import uplinks

NETWORK = '0000000a-0000-4000-8000-000000000001'
OTHER = '0000000a-0000-4000-8000-000000000002'
_ALL = head.get_metadata()


class NumberTest(testtools.TestCase):

    def test_no_two_types_share_a_number(self):
        largest = 4096 + (1 << 24) - 1
        for kind, id_, wanted in (
                ('vlan', 1, 1), ('vlan', 4094, 4094), ('flat', None, 4095),
                ('vxlan', 1, 4097), ('vxlan', (1 << 24) - 1, largest)):
            self.assertEqual(wanted, segments.number(kind, id_, NETWORK))
        number = segments.number('local', None, 'ffffffff-0000')
        self.assertTrue(largest < number < 1 << 32)


class UplinksTest(testtools.TestCase):

    def setUp(self):
        super().setUp()
        self.useFixture(fixtures.FakeLogger())
        cfg.CONF([])   # of the policy of contexts
        db_options.set_defaults(cfg.CONF, connection='sqlite://')
        engine = db_api.get_writer_session().get_bind()
        _ALL.create_all(engine)
        self.addCleanup(_ALL.drop_all, engine)
        self.engine = engine
        self.count = 0

    def insert(self, name, **values):
        with self.engine.begin() as connection:
            connection.execute(_ALL.tables[name].insert(), values)

    def attributes(self, kind):
        self.count += 1
        self.insert('standardattributes', id=self.count, resource_type=kind,
                    revision_number=1)
        return self.count

    def network(self, id_, kind, number, physical=None):
        self.insert('networks', id=id_,
                    standard_attr_id=self.attributes('networks'))
        self.insert('networksegments', id=id_, network_id=id_,
                    network_type=kind, physical_network=physical,
                    segmentation_id=number, is_dynamic=False,
                    segment_index=0,
                    standard_attr_id=self.attributes('networksegments'))

    def port(self, network, host, number, vif_type='vale', status='ACTIVE',
             owner='compute:nova'):
        standard = self.attributes('ports')
        id_ = uuidutils.generate_uuid()
        self.insert('ports', id=id_, network_id=network, device_id='s',
                    device_owner=owner, status='ACTIVE',
                    standard_attr_id=standard, admin_state_up=True,
                    mac_address='fa:16:3e:00:00:%02x' % standard)
        self.insert('ml2_port_bindings', port_id=id_, host=host,
                    vif_type=vif_type, status=status,
                    vif_details=jsonutils.dumps(
                        {'vale_switch': 'vale0', 'vale_segment': number,
                         'vale_allowed': [], 'vale_port_security': True}))
        self.insert('ml2_port_binding_levels', port_id=id_, host=host,
                    level=0, driver='vale', segment_id=network)
        return id_

    def agent(self, host, address=None, kind='ClickOS agent'):
        links = {'tunneling_ip': address} if address else {}
        now = timeutils.utcnow()
        self.insert('agents', id=uuidutils.generate_uuid(), agent_type=kind,
                    binary='b', topic='t', host=host, admin_state_up=True,
                    created_at=now, started_at=now, heartbeat_timestamp=now,
                    configurations=jsonutils.dumps(links), load=0)

    def test_networks_and_their_other_hosts(self):
        self.network(NETWORK, 'vxlan', 101)
        self.network(OTHER, 'vlan', 101, 'physnet1')
        self.agent('one', '192.0.2.1')
        self.agent('two', '192.0.2.2')
        self.agent('kvm', '192.0.2.3', 'Open vSwitch agent')
        for host in ('one', 'one', 'two'):
            self.port(NETWORK, host, 4197)
        self.port(NETWORK, 'kvm', 0, vif_type='ovs')
        self.port(OTHER, 'one', 101)
        vlan = {'switch': 'vale0', 'segment': 101, 'network_type': 'vlan',
                'physical_network': 'physnet1', 'segmentation_id': 101,
                'peers': []}
        vxlan = {'switch': 'vale0', 'segment': 4197, 'network_type': 'vxlan',
                 'physical_network': None, 'segmentation_id': 101,
                 'peers': ['192.0.2.2', '192.0.2.3']}
        self.assertEqual(
            {'networks': [vlan, vxlan]},
            port_rpc.PortStates().get_networks(None, host='one'))
        self.assertEqual([], uplinks.of_host('kvm'))
        self.assertEqual(['one', 'two'], uplinks.hosts_of(NETWORK))
        self.assertIn('host: expected', port_rpc.PortStates().get_networks(
            None, host=None)['error'])

    def test_devices_of_neutrons_agents(self):
        self.network(NETWORK, 'vlan', 101, 'physnet1')
        self.port(NETWORK, 'one', 101)
        id_ = self.port(NETWORK, 'one', 101, owner='network:dhcp')
        self.port(NETWORK, 'two', 101, owner='network:router_gateway')
        self.port(NETWORK, 'one', 101, 'ovs', owner='network:dhcp')
        told = port_rpc.PortStates().get_devices(None, host='one')
        device, = told['devices']
        mac = device.pop('mac')
        self.assertTrue(mac.startswith('fa:16:3e:'))
        self.assertEqual(
            {'port': id_, 'switch': 'vale0', 'segment': 101}, device)
        self.assertIn('host: expected', port_rpc.PortStates().get_devices(
            None, host='')['error'])

    def test_the_addresses_of_bound_ports(self):
        self.network(NETWORK, 'vlan', 101, 'physnet1')
        bound = self.port(NETWORK, 'one', 101)
        coming = self.port(NETWORK, 'one', 101, status='INACTIVE')
        others = [self.port(NETWORK, 'one', 101, 'ovs'),
                  self.port(NETWORK, 'two', 101)]
        guard = {'allowed': [], 'port_security': True}
        self.assertEqual({bound: guard, coming: guard}, guards.of_ports(
            'one', [bound, coming, *others]))

    def test_the_role_of_a_bound_port(self):
        details = {'vale_allowed': [], 'vale_port_security': True}
        for said, wanted in (({'vale_dhcp_server': True},
                              {'dhcp_server': True}),
                             ({'vale_dhcp_server': False}, {}), ({}, {})):
            self.assertEqual(
                {'allowed': [], 'port_security': True, **wanted},
                guards._guard({**details, **said}))

    def test_a_tunnel_has_one_host(self):
        self.agent('one', '192.0.2.1')
        self.assertEqual('one', uplinks.host_of('192.0.2.1'))
        self.assertIsNone(uplinks.host_of('192.0.2.2'))
        states = port_rpc.PortStates()
        for links, part in (({'tunnel_ip': '192.0.2.1'}, 'is of host one'),
                            ({'tunnel_ip': '192.0.2.999'}, 'an IP address'),
                            ({'interfaces': {'a': 7}}, 'links.interfaces'),
                            ('x', 'links: expected a dict')):
            told = states.report_state(None, host='two', links=links)
            self.assertIn(part, told['error'])

    def test_two_local_networks_of_one_number(self):
        self.network(NETWORK, 'local', None)
        self.assertTrue(uplinks.is_alone(NETWORK))
        self.network(OTHER, 'local', None)
        self.assertFalse(uplinks.is_alone(NETWORK))
