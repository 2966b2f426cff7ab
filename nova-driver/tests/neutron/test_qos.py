# SPDX-License-Identifier: Apache-2.0
"""Limits of ports from Neutron's own tables in memory."""

from unittest import mock

from neutron.db import models_v2
from neutron.db.qos import models
from neutron_lib.db import api as db_api
from neutron_lib.db import standard_attr
from oslo_config import cfg
from oslo_db import options as db_options
import testtools

from neutron_clickos import qos

_TABLES = [model.__table__ for model in (
    standard_attr.StandardAttribute, models_v2.Network, models_v2.Port,
    models.QosPolicy, models.QosPortPolicyBinding,
    models.QosNetworkPolicyBinding, models.QosBandwidthLimitRule,
    models.QosPacketRateLimitRule)]


class QosTest(testtools.TestCase):

    def setUp(self):
        super().setUp()
        cfg.CONF([])   # of the policy of contexts
        db_options.set_defaults(cfg.CONF, connection='sqlite://')
        engine = db_api.get_writer_session().get_bind()
        for table in _TABLES:
            table.create(engine)
            self.addCleanup(table.drop, engine)
        self.connection = engine.connect()
        self.addCleanup(self.connection.close)
        self._standard('networks', 0)
        self.insert('networks', id='net', project_id='us', standard_attr_id=0)
        for n, policy in enumerate(('big', 'empty'), 10):
            self._standard('qos_policies', n)
            self.insert('qos_policies', id=policy, name=policy,
                        standard_attr_id=n)
        for n, port in enumerate(('own', 'inherits'), 20):
            self._standard('ports', n)
            self.insert('ports', id=port, network_id='net', device_id='',
                        device_owner='', status='ACTIVE', admin_state_up=True,
                        mac_address=str(n), standard_attr_id=n)
        self.insert('qos_bandwidth_limit_rules', id='b', qos_policy_id='big',
                    max_kbps=5000, direction='egress')
        self.insert('qos_packet_rate_limit_rules', id='p',
                    qos_policy_id='big', max_kpps=2, direction='ingress')

    def _standard(self, kind, number):
        self.insert('standardattributes', id=number, resource_type=kind,
                    revision_number=1)

    def insert(self, name, /, **values):
        table, = (each for each in _TABLES if each.name == name)
        self.connection.execute(table.insert(), values)
        self.connection.commit()

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
