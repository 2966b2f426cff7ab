# SPDX-License-Identifier: Apache-2.0
"""The room of a switch for rules, from Neutron's own tables in memory."""

from unittest import mock

from neutron.db.models import securitygroup as models
from neutron.db import models_v2
from neutron.plugins.ml2 import models as ml2_models
from neutron_lib import context
from neutron_lib.db import standard_attr

from neutron_clickos import filters
from tests.neutron import base


class RoomTest(base.MemoryCase):

    tables = [model.__table__ for model in (
        standard_attr.StandardAttribute, models_v2.Network, models_v2.Port,
        ml2_models.PortBinding, models.SecurityGroup,
        models.SecurityGroupPortBinding)]

    def setUp(self):
        super().setUp()
        self.insert_resource('networks', id='net', project_id='us')
        self.insert_resource('securitygroups', id='group', project_id='us',
                             stateful=False)
        for n, vif_type in enumerate(('vale', 'ovs', 'vale')):
            port = f'port{n}'
            self.insert_resource(
                'ports', id=port, network_id='net', device_id='',
                project_id='us',
                device_owner='', status='ACTIVE', admin_state_up=True,
                mac_address=str(n))
            self.insert('ml2_port_bindings', port_id=port, host='compute1',
                        vif_type=vif_type, vnic_type='normal',
                        vif_details='{}', status='ACTIVE')
            if n < 2:
                self.insert('securitygroupportbindings', port_id=port,
                            security_group_id='group')
        self.admin = context.get_admin_context()

    def check(self, count):
        """Add a rule to a group whose ports have that many."""
        asked = []

        def found(ports, *_format):
            asked.extend(ports)
            return {port: [{}] * count for port in ports}

        with mock.patch.object(filters, '_all', found):
            filters.check_room(self.admin, 'group', [{}])
        return asked

    def test_a_rule_needs_room_at_the_ports_of_our_switches(self):
        self.assertEqual(['port0'], self.check(1023))
        error = self.assertRaises(filters.TooManyRules, self.check, 1024)
        self.assertIn('1025', str(error))
        self.assertIn('port0', str(error))

    def test_a_port_of_another_project_keeps_no_rule_away(self):
        """A group may be shared, and the other one's rules are its own."""
        self.insert_resource(
            'ports', id='theirs', network_id='net', device_id='',
            project_id='them', device_owner='', status='ACTIVE',
            admin_state_up=True, mac_address='x')
        self.insert('ml2_port_bindings', port_id='theirs', host='compute1',
                    vif_type='vale', vnic_type='normal', vif_details='{}',
                    status='ACTIVE')
        self.insert('securitygroupportbindings', port_id='theirs',
                    security_group_id='group')
        self.assertEqual(['port0'], self.check(0))

    def test_groups_tell_whether_they_are_stateful(self):
        ports = [{'security_group_rules': [{'security_group_id': 'group'},
                                           {'direction': 'ingress'}]}]
        self.assertEqual({'group': False},
                         filters._stateful(self.admin, ports))
