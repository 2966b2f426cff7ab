# SPDX-License-Identifier: Apache-2.0
"""An agent asks for things of another host by every RPC method of Neutron.

The methods and their arguments are read from the endpoint itself; the tables
are Neutron's and networking-sfc's own ones in memory.
"""

import inspect
import json
from unittest import mock

from clickos_client import neutron_rpc
import fixtures
from networking_sfc.db import flowclassifier_db
from networking_sfc.db import sfc_db
from neutron.db import agents_db
from neutron.db.migration.models import head
import sqlalchemy as sa

from neutron_clickos import port_rpc
from neutron_clickos import wiring
from tests.neutron import base

NETWORK = '00000000-0000-4000-8000-000000000000'
PORT = '00000000-0000-4000-8000-000000000001'
SERVER = '11111111-2222-4333-8444-555555555555'
HERE, THERE = 'compute1', 'compute2'
#: A foreign value of each argument that can name an object.
FOREIGN = {'ports': [[PORT, SERVER]], 'up': [PORT], 'down': [PORT]}
#: Arguments that name none.
VALUES = {'host': HERE, 'start': False, 'links': {}, 'load': None,
          'policy_format': neutron_rpc.POLICY_FORMAT}


def methods():
    """Return {name: its arguments} of the endpoint's methods."""
    return {name: [each for each in inspect.signature(method).parameters
                   if each not in ('self', 'context')]
            for name, method in inspect.getmembers(port_rpc.PortStates,
                                                   inspect.isfunction)
            if not name.startswith('_')}


class ForeignIdsTest(base.MemoryCase):
    """A port is bound to one host, and the agent of another one asks."""

    tables = head.get_metadata().sorted_tables

    def setUp(self):
        super().setUp()
        self.useFixture(fixtures.FakeLogger())
        plugin = mock.create_autospec(agents_db.AgentDbMixin, instance=True)
        plugin.notifier = plugin.type_manager = None
        plugins = {None: plugin, 'sfc': sfc_db.SfcDbPlugin(),
                   'flow_classifier':
                   flowclassifier_db.FlowClassifierDbPlugin()}
        self.useFixture(fixtures.MockPatchObject(
            port_rpc.directory, 'get_plugin',
            new=lambda name=None: plugins.get(name)))
        self.ml2 = self.useFixture(fixtures.MockPatchObject(
            wiring.rpc, 'RpcCallbacks', autospec=True)).mock.return_value
        self.states = port_rpc.PortStates()
        self.add_port()

    def add_port(self):
        self.insert_resource('networks', id=NETWORK)
        self.insert_resource(
            'ports', id=PORT, network_id=NETWORK, device_id=SERVER,
            device_owner='compute:nova', status='ACTIVE',
            mac_address='fa:16:3e:00:00:01', admin_state_up=True)
        self.insert('ml2_port_bindings', port_id=PORT, host=THERE,
                    vif_type='vale', vif_details='{}', status='ACTIVE')

    def rows(self):
        return {table.name: self.connection.execute(sa.select(table)).all()
                for table in self.tables}

    def ask(self, method, host):
        """Call a method; an argument without a value here is an error."""
        values = {**VALUES, **FOREIGN, 'host': host}
        return getattr(self.states, method)({}, **{
            name: values[name] for name in methods()[method]})

    def test_every_method(self):
        found = methods()
        self.assertIn('get_port_states', found)
        for method in found:
            before = self.rows()
            answer = self.ask(method, HERE)
            self.assertNotIn('error', answer, method)
            answer.get('states', {}).pop(PORT, None)
            for secret in (PORT, SERVER, 'fa:16:3e:00:00:01'):
                self.assertNotIn(secret, json.dumps(answer), method)
            self.assertEqual(before, self.rows(), method)
        self.assertEqual([], self.ml2.mock_calls)

    def test_the_host_itself_gets_what_the_other_does_not(self):
        self.assertEqual({'states': {PORT: neutron_rpc.ABSENT}},
                         self.ask('get_port_states', HERE))
        self.assertEqual({'states': {PORT: neutron_rpc.UP}},
                         self.ask('get_port_states', THERE))
        self.assertEqual({'ports': [PORT]},
                         self.ask('get_active_ports', THERE))
        self.ask('report_ports', THERE)
        self.assertEqual(2, len(self.ml2.mock_calls))

    def test_a_method_with_an_unknown_argument_fails(self):
        with mock.patch.object(port_rpc.PortStates, 'novel', create=True,
                               new=lambda self, context, novel_id: {}):
            self.assertRaises(KeyError, self.ask, 'novel', HERE)
