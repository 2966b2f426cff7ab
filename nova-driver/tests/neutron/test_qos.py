# SPDX-License-Identifier: Apache-2.0
"""Limits of ports from Neutron's own tables in memory."""

from unittest import mock

from neutron.db import models_v2
from neutron.db.qos import models
from neutron_lib.db import standard_attr

from neutron_clickos import qos
from tests.neutron import base


class QosTest(base.MemoryCase):

    tables = [model.__table__ for model in (
        standard_attr.StandardAttribute, models_v2.Network, models_v2.Port,
        models.QosPolicy, models.QosPortPolicyBinding,
        models.QosNetworkPolicyBinding, models.QosBandwidthLimitRule,
        models.QosPacketRateLimitRule)]

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

    def test_rules_that_the_switch_has_not_are_refused(self):
        changed = mock.Mock()
        driver = qos.QosDriver('vale', changed)
        good = {'max_kbps': 1, 'max_burst_kbps': 0, 'direction': 'egress'}
        for kind, values, is_good in (
                ('bandwidth_limit', good, True),
                ('bandwidth_limit', dict(good, max_kbps=0), False),
                ('bandwidth_limit', dict(good, max_kbps=10 ** 9 + 1), False),
                ('dscp_marking', {'dscp_mark': 26}, False)):
            rule = mock.Mock(rule_type=kind, get=values.get)
            self.assertEqual(is_good, driver.is_rule_supported(rule))
        changed.assert_not_called()
        driver.update_policy(mock.sentinel.context, mock.sentinel.policy)
        changed.assert_called_once_with()
