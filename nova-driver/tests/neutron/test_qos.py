# SPDX-License-Identifier: Apache-2.0
"""Limits of ports from Neutron's own tables in memory."""

from unittest import mock

from neutron.db import models_v2
from neutron.db.qos import models
from neutron.services.qos.drivers import manager as drivers
from neutron.services.qos.drivers.openvswitch import driver as ovs
from neutron_lib.db import standard_attr

from neutron_clickos import qos
from tests.neutron import base


class QosTest(base.MemoryCase):

    tables = [model.__table__ for model in (
        standard_attr.StandardAttribute, models_v2.Network, models_v2.Port,
        models.QosPolicy, models.QosPortPolicyBinding,
        models.QosNetworkPolicyBinding, models.QosBandwidthLimitRule,
        models.QosPacketRateLimitRule, models.QosDscpMarkingRule)]

    def setUp(self):
        super().setUp()
        self.insert_resource('networks', id='net', project_id='us')
        for policy in 'big', 'empty':
            self.insert_resource('qos_policies', id=policy, name=policy)
        for n, port in enumerate(('own', 'inherits')):
            self.insert_resource(
                'ports', id=port, network_id='net', device_id='',
                device_owner='', status='ACTIVE', admin_state_up=True,
                mac_address=str(n))
        self.insert('qos_bandwidth_limit_rules', id='b', qos_policy_id='big',
                    max_kbps=5000, direction='egress')
        self.insert('qos_packet_rate_limit_rules', id='p',
                    qos_policy_id='big', max_kpps=2, direction='ingress')

    def test_a_port_without_a_policy_has_that_of_its_network(self):
        both = ('own', 'inherits', 'absent')
        self.assertEqual({'own': {}, 'inherits': {}}, qos.of_ports(both))
        self.insert('qos_network_policy_bindings', policy_id='big',
                    network_id='net')
        self.insert('qos_port_policy_bindings', policy_id='empty',
                    port_id='own')
        big = {'rx': {'bits_per_s': 5000000}, 'tx': {'packets_per_s': 2000}}
        self.assertEqual({'own': {}, 'inherits': big}, qos.of_ports(both))

    def test_bursts_and_marks_reach_agents_that_know_them(self):
        self.update('qos_bandwidth_limit_rules', max_burst_kbps=900)
        self.update('qos_packet_rate_limit_rules', max_burst_kpps=7)
        self.insert('qos_dscp_marking_rules', id='d', qos_policy_id='big',
                    dscp_mark=46)
        self.insert('qos_port_policy_bindings', policy_id='big',
                    port_id='own')
        self.assertEqual(
            {'own': {'rx': {'bits_per_s': 5000000, 'burst_bits': 900000},
                     'tx': {'packets_per_s': 2000, 'burst_packets': 7000},
                     'dscp': 46}}, qos.of_ports(['own']))
        self.assertEqual(
            {'own': {'rx': {'bits_per_s': 5000000},
                     'tx': {'packets_per_s': 2000}}},
            qos.of_ports(['own'], 1))

    def test_types_of_other_drivers_stay_listed(self):
        manager = drivers.QosServiceDriverManager.__new__(
            drivers.QosServiceDriverManager)
        manager._drivers = []
        manager.rpc_notifications_required = False
        driver = qos.QosDriver('vale', mock.Mock())
        other = mock.Mock(supported_rules=ovs.SUPPORTED_RULES,
                          requires_rpc_notifications=False)
        other.is_rule_supported.return_value = False
        for each in driver, other:
            manager.register_driver(each)
        driver._note_manager(None, None, manager)
        self.assertEqual(set(ovs.SUPPORTED_RULES),
                         manager.supported_rule_types())
        rule = mock.Mock(rule_type='minimum_bandwidth')
        self.assertFalse(driver.is_rule_supported(rule))
        manager._drivers = [driver]
        self.assertEqual(set(qos.RULES), manager.supported_rule_types())

    def test_rules_that_the_switch_has_not_are_refused(self):
        changed = mock.Mock()
        driver = qos.QosDriver('vale', changed)
        good = {'max_kbps': 1, 'max_burst_kbps': 0, 'direction': 'egress'}
        for kind, values, is_good in (
                ('bandwidth_limit', good, True),
                ('bandwidth_limit', dict(good, max_kbps=0), False),
                ('bandwidth_limit', dict(good, max_kbps=10 ** 9 + 1), False),
                ('bandwidth_limit', dict(good, max_burst_kbps=2 ** 31 - 1),
                 False),
                ('dscp_marking', {'dscp_mark': 26}, True),
                ('dscp_marking', {'dscp_mark': 27}, False),
                ('minimum_bandwidth', {'min_kbps': 1}, False)):
            rule = mock.Mock(rule_type=kind, get=values.get)
            self.assertEqual(is_good, driver.is_rule_supported(rule))
        changed.assert_not_called()
        driver.update_policy(mock.sentinel.context, mock.sentinel.policy)
        changed.assert_called_once_with()
