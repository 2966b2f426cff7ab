# SPDX-License-Identifier: Apache-2.0
"""The answers to agents come from Neutron's own tables."""

from unittest import mock

from clickos_client import neutron_rpc
import fixtures
from neutron.db import agents_db
from neutron.db import models_v2
from neutron.plugins.ml2 import models
from neutron_lib.db import api as db_api
from neutron_lib.db import standard_attr
from oslo_config import cfg
from oslo_db import options as db_options
import testtools

from neutron_clickos import port_rpc
from neutron_clickos import wiring

NETWORK = '00000000-0000-4000-8000-000000000000'
SERVER = '11111111-2222-4333-8444-555555555555'
OTHER = '99999999-2222-4333-8444-555555555555'
_TABLES = tuple(model.__table__ for model in (
    standard_attr.StandardAttribute, models_v2.Network, models_v2.Port,
    models.PortBinding))


def port_id(n):
    return '00000000-0000-4000-8000-%012x' % n


class PortStatesTest(testtools.TestCase):
    """On Neutron's tables in memory."""

    def setUp(self):
        super().setUp()
        cfg.CONF([])   # of the policy of contexts
        db_options.set_defaults(cfg.CONF, connection='sqlite://')
        self.engine = db_api.get_writer_session().get_bind()
        for table in _TABLES:
            table.create(self.engine)
            self.addCleanup(table.drop, self.engine)
        with self.engine.begin() as connection:
            connection.execute(_TABLES[0].insert(), {
                'id': 99, 'resource_type': 'networks', 'revision_number': 1})
            connection.execute(_TABLES[1].insert(), {
                'id': NETWORK, 'standard_attr_id': 99})
        self.states = port_rpc.PortStates()
        self.useFixture(fixtures.FakeLogger())

    def test_an_agent_reports(self):
        plugin = mock.create_autospec(agents_db.AgentDbMixin, instance=True)
        self.useFixture(fixtures.MockPatchObject(
            port_rpc.directory, 'get_plugin', return_value=plugin))
        for start, flags in ((True, {'start_flag': True}), (False, {})):
            self.assertEqual({}, self.states.report_state(
                None, host='compute1', start=start))
            _context, agent, _time = \
                plugin.create_or_update_agent.mock_calls[-1].args
            self.assertEqual(
                {'agent_type': 'ClickOS agent', 'binary': 'clickos-agent',
                 'host': 'compute1', 'topic': neutron_rpc.AGENT,
                 'configurations': {'interface_mappings': {}}, **flags}, agent)
        self.assertIn('host: expected', self.states.report_state(
            None, host=7)['error'])

    def test_a_report_tells_what_runs_on_the_host(self):
        plugin = mock.create_autospec(agents_db.AgentDbMixin, instance=True)
        self.useFixture(fixtures.MockPatchObject(
            port_rpc.directory, 'get_plugin', return_value=plugin))
        runs = {'release': '0.3.0', 'cosmosd': '0.3.0', 'host_kind': 'xen'}
        self.states.report_state(
            None, host='compute1', links={
                **runs, 'engine_sha256': None, 'later': 'thing'})
        _context, agent, _time = plugin.create_or_update_agent.call_args.args
        self.assertEqual({'interface_mappings': {}, **runs},
                         agent['configurations'])
        for bad in (7, 'x' * 65, ['0.3.0']):
            self.assertIn('links: ', self.states.report_state(
                None, host='compute1', links={'release': bad})['error'])

    def test_a_report_tells_what_the_switch_moves(self):
        plugin = mock.create_autospec(agents_db.AgentDbMixin, instance=True)
        self.useFixture(fixtures.MockPatchObject(
            port_rpc.directory, 'get_plugin', return_value=plugin))
        load = {'packets_per_s': 7, 'dropped_per_s': 0}
        self.states.report_state(None, host='compute1', load=load)
        _context, agent, _time = plugin.create_or_update_agent.call_args.args
        self.assertEqual(load, agent['configurations']['load'])
        for bad in (7, {'packets_per_s': 7}, {**load, 'dropped_per_s': -1},
                    {**load, 'dropped_per_s': True},
                    {**load, 'dropped_per_s': 1 << 60}, {**load, 'more': 1}):
            self.assertIn('load: expected', self.states.report_state(
                None, host='compute1', load=bad)['error'])

    def add(self, n, up=True, host='compute1', vif_type='vale',
            status='ACTIVE'):
        attributes, _, ports, bindings = _TABLES
        with self.engine.begin() as connection:
            connection.execute(attributes.insert(), {
                'id': n, 'resource_type': 'ports', 'revision_number': 1})
            connection.execute(ports.insert(), {
                'id': port_id(n), 'network_id': NETWORK,
                'device_id': SERVER, 'device_owner': 'compute:nova',
                'status': 'ACTIVE', 'standard_attr_id': n,
                'mac_address': 'fa:16:3e:00:00:%02x' % n,
                'admin_state_up': up})
            connection.execute(bindings.insert(), {
                'port_id': port_id(n), 'host': host, 'vif_type': vif_type,
                'status': status})

    def ask(self, *pairs, host='compute1'):
        return self.states.get_port_states({}, host=host,
                                           ports=[list(p) for p in pairs])

    def test_states(self):
        self.add(1)
        self.add(2, up=False)
        self.add(3, host='compute2')
        self.add(4, vif_type='unbound')
        self.add(5, status='INACTIVE')
        wanted = {1: 'up', 2: 'down', 3: 'absent', 4: 'absent', 5: 'up',
                  6: 'absent'}
        self.assertEqual(
            {'states': {port_id(n): state for n, state in wanted.items()}},
            self.ask(*((port_id(n), SERVER) for n in wanted)))

    def test_a_port_is_its_servers(self):
        self.add(1)
        self.assertEqual({'states': {port_id(1): 'absent'}},
                         self.ask((port_id(1), OTHER)))

    def test_an_agent_reports_its_own_ports(self):
        self.add(1)
        self.add(2, host='compute2')
        self.add(3, status='INACTIVE')
        calls = self.useFixture(fixtures.MockPatchObject(
            wiring.rpc, 'RpcCallbacks', autospec=True)).mock.return_value
        self.useFixture(fixtures.MockPatchObject(
            wiring.directory, 'get_plugin'))
        self.assertEqual({'ports': [port_id(1)]},
                         self.states.get_active_ports({}, host='compute1'))
        every = [port_id(n) for n in range(1, 5)]
        self.assertEqual({}, self.states.report_ports(
            {}, host='compute1', up=every, down=[]))
        # of a guest that runs here, and of one that moves here
        self.assertCountEqual(
            [mock.call(mock.ANY, device=port_id(n), host='compute1')
             for n in (1, 3)], calls.update_device_up.mock_calls)
        calls.update_device_down.side_effect = OSError
        self.assertEqual({}, self.states.report_ports(
            {}, host='compute1', up=[], down=every))
        calls.update_device_down.assert_called_once_with(
            mock.ANY, device=port_id(1), host='compute1')

    def test_bad_reports_are_named(self):
        for args, part in (({'host': 7}, 'host'), ({'up': 'x'}, 'up: '),
                           ({'up': [7]}, 'up: '),
                           ({'down': [port_id(1)] * 501}, 'at most 500')):
            self.assertIn(part, self.states.report_ports({}, **{
                'host': 'compute1', 'up': [], 'down': [], **args})['error'])
        # pylint: disable-next=no-value-for-parameter  # that is the fault
        self.assertIn('host', self.states.get_active_ports({})['error'])

    def test_bad_arguments_are_named(self):
        self.useFixture(fixtures.FakeLogger())
        good = [port_id(1), SERVER]
        for args, part in (
                ({'host': None, 'ports': []}, 'host'),
                ({'host': 'x' * 256, 'ports': []}, 'host'),
                ({'host': 'a', 'ports': 'x'}, 'ports'),
                ({'host': 'a', 'ports': [good] * (neutron_rpc.MAX_PORTS + 1)},
                 'at most 500'),
                ({'host': 'a', 'ports': [good, [port_id(1)]]}, 'ports[1]'),
                ({'host': 'a', 'ports': [[7, SERVER]]}, 'ports[0]'),
                ({'host': 'a', 'ports': [["' OR 1", SERVER]]}, 'ports[0]')):
            self.assertIn(part,
                          self.states.get_port_states({}, **args)['error'])


class AgentNotifierTest(testtools.TestCase):

    def setUp(self):
        super().setUp()
        cfg.CONF([])   # of the policy of contexts

    def test_a_broker_that_is_away_delays_nobody(self):
        logger = self.useFixture(fixtures.FakeLogger())
        self.useFixture(fixtures.MockPatch(
            'neutron_lib.rpc.get_client', autospec=True,
            side_effect=OSError('no broker')))
        port_rpc.AgentNotifier().ports_changed('compute1', [port_id(1)])
        self.assertIn('Host compute1 got no ports_changed', logger.output)
        self.assertIn('no broker', logger.output)
