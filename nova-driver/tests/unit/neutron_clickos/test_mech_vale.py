# SPDX-License-Identifier: Apache-2.0
"""The mechanism driver against Neutron's own contract of a port context."""

from unittest import mock

import fixtures
from neutron.plugins.ml2.drivers import mech_agent
from neutron_lib.callbacks import events
from neutron_lib.callbacks import exceptions
from neutron_lib.callbacks import registry
from neutron_lib.callbacks import resources
from neutron_lib import context
from neutron_lib import exceptions as lib_exceptions
from neutron_lib.plugins.ml2 import api
from oslo_config import cfg
from oslo_config import fixture as config_fixture
import testtools

from neutron_clickos import conf
from neutron_clickos import mech_vale

PORT = '01234567-89ab-4def-8123-456789abcdef'
SERVER = '11111111-2222-4333-8444-555555555555'
OTHER = '99999999-2222-4333-8444-555555555555'
NETWORK = '22222222-2222-4333-8444-555555555555'
MAC = 'fa:16:3e:00:00:01'


AGENT = {'agent_type': 'ClickOS agent', 'alive': True, 'host': 'compute1',
         'configurations': {}}
TUNNELS = dict(AGENT, configurations={'tunneling_ip': '192.0.2.1'})


def port(**values):
    return dict({
        'id': PORT, 'network_id': NETWORK, 'mac_address': MAC,
        'binding:vnic_type': 'normal',
        'binding:vif_type': 'unbound', 'binding:host_id': '',
        'device_id': '', 'device_owner': '', 'admin_state_up': True,
        'port_security_enabled': True,
        'fixed_ips': [{'subnet_id': 's', 'ip_address': '10.0.1.5'}],
        'allowed_address_pairs': []}, **values)


def bound(**values):
    return port(**dict({
        'binding:vif_type': 'vale', 'binding:host_id': 'compute1',
        'device_id': SERVER, 'device_owner': 'compute:nova'}, **values))


def segment(network_type='vlan', physical_network='physnet1', vlan=101):
    return {'id': 'segment-%s' % vlan, 'network_type': network_type,
            'physical_network': physical_network, 'segmentation_id': vlan}


def port_context(current, original=None, segments=(), mtu=1500, of=AGENT):
    context = mock.create_autospec(api.PortContext, instance=True)
    context.current = current
    context.original = original
    context.segments_to_bind = list(segments)
    context.network.current = {'id': NETWORK, 'mtu': mtu}
    context.host = context.original_host = 'compute1'
    context.plugin_context = mock.sentinel.context
    context._plugin = mock.Mock(spec_set=('get_subnet',))
    context._plugin.get_subnet.return_value = {'segment_id': None}
    context.host_agents.side_effect = lambda agent_type: [
        agent for agent in (of,) if agent['agent_type'] == agent_type]
    return context


class TestCase(testtools.TestCase):

    def setUp(self):
        super().setUp()
        self.useFixture(fixtures.FakeLogger())
        conf.register_opts(cfg.CONF)
        self.conf = self.useFixture(config_fixture.Config(cfg.CONF))
        self.configure('physnet1:vale0', 'physnet2:vale7')
        self.conf.config(group='ml2_vale', tunnel_switch='vale9')
        registry.clear()
        self.addCleanup(registry.clear)
        self.driver = mech_vale.ValeMechanismDriver()
        self.driver.initialize()

    def configure(self, *mappings):
        self.conf.config(group='ml2_vale', switch_mappings=list(mappings))


class InitializeTest(TestCase):

    def test_bad_mappings_end_neutron(self):
        for bad, part in (('physnet1', 'physnet1'),
                          ('physnet1:br-int', 'br-int'),
                          ('physnet1:vale', 'like vale0'),
                          ('physnet1:vale1234', 'vale1234'),
                          (':vale0', 'vale0')):
            self.configure(bad)
            error = self.assertRaises(ValueError, self.driver.initialize)
            self.assertIn('[ml2_vale] switch_mappings', str(error))
            self.assertIn(part, str(error))

    def test_two_networks_on_one_switch_would_share_vlans(self):
        self.configure('physnet1:vale0', 'physnet2:vale0')
        self.assertRaises(ValueError, self.driver.initialize)

    def test_binds_ports_without_addresses(self):
        self.assertEqual('l2', self.driver.connectivity)


class BindPortTest(TestCase):

    def bind(self, current, *segments, **values):
        context = port_context(current, segments=segments, **values)
        self.driver.bind_port(context)
        return context.set_binding

    def test_details(self):
        self.bind(port(), segment()).assert_called_once_with(
            'segment-101', 'vale',
            {'vale_switch': 'vale0', 'vale_segment': 101,
             'vale_port': 'p01234567-89', 'vale_port_security': True,
             'vale_filtered': True,
             'vale_link_up': True, 'vale_dhcp_server': False,
             'vale_allowed': [{'mac': MAC, 'ip': '10.0.1.5/32'}],
             'port_filter': True, 'connectivity': 'l2'})

    def test_ports_of_a_project_have_one_number_and_no_project_none(self):
        def owner(project):
            bind = self.bind(port(project_id=project), segment())
            return bind.call_args.args[2].get('vale_owner')
        self.assertEqual(owner('a'), owner('a'))
        self.assertNotEqual(owner('a'), owner('b'))
        self.assertLess(owner('a'), 2 ** 48)
        self.assertIsNone(owner(''))

    def test_only_live_agents_of_our_type(self):
        for agents in ([], [dict(AGENT, alive=False)]):
            context = port_context(port(), segments=[segment()])
            context.host_agents.side_effect = lambda agent_type: agents
            self.driver.bind_port(context)
            self.assertEqual([], context.set_binding.mock_calls)
            context.host_agents.assert_called_once_with('ClickOS agent')

    def test_a_port_waits_for_its_agent(self):
        add = self.useFixture(fixtures.MockPatchObject(
            mech_agent.provisioning_blocks, 'add_provisioning_component',
            autospec=True)).mock
        context = port_context(bound(status='DOWN'))
        self.driver.create_port_precommit(context)
        context.original = port(status='DOWN')
        context.original_host = ''
        self.driver.update_port_precommit(context)
        self.assertEqual(
            [mock.call(context.plugin_context, PORT, 'port', 'L2')] * 2,
            add.mock_calls)

    def test_port_name_fits_the_switch(self):
        details = self.bind(port(), segment()).mock_calls[0].args[2]
        self.assertRegex(details['vale_port'], '^[a-z0-9-]{1,15}$')

    def test_a_disabled_port(self):
        details = self.bind(port(admin_state_up=False),
                            segment()).mock_calls[0].args[2]
        self.assertIs(False, details['vale_link_up'])

    def test_port_security_off(self):
        details = self.bind(port(port_security_enabled=False),
                            segment()).mock_calls[0].args[2]
        self.assertIs(False, details['vale_port_security'])

    def test_the_role_of_a_dhcp_server_is_in_the_binding_profile(self):
        for profile, serves in (
                ({'clickos_roles': ['dhcp-server']}, True),
                ({'clickos_roles': []}, False),
                ({'clickos_roles': 'dhcp-server'}, False),
                ({}, False), (None, False)):
            details = self.bind(port(**{'binding:profile': profile}),
                                segment()).mock_calls[0].args[2]
            self.assertIs(serves, details['vale_dhcp_server'], profile)

    def test_a_tag_gives_no_role(self):
        details = self.bind(port(tags=['dhcp-server', 'clickos_roles']),
                            segment()).mock_calls[0].args[2]
        self.assertIs(False, details['vale_dhcp_server'])

    def test_port_security_unknown_is_on(self):
        current = port()
        del current['port_security_enabled']
        details = self.bind(current, segment()).mock_calls[0].args[2]
        self.assertIs(True, details['vale_port_security'])

    def test_first_segment_with_a_switch(self):
        found = self.bind(port(), segment('vxlan', None, 5),
                          segment('gre', None, 5),
                          segment(physical_network='physnet3'),
                          segment(physical_network='physnet2', vlan=7),
                          segment())
        found.assert_called_once()
        self.assertEqual('segment-7', found.mock_calls[0].args[0])
        self.assertEqual('vale7', found.mock_calls[0].args[2]['vale_switch'])

    def test_nothing_to_bind(self):
        for segments in ((), (segment('flat', 'physnet3'),),
                         (segment('geneve', None, 5),),
                         (segment('gre', None, 5),),
                         (segment(physical_network='physnet3'),)):
            self.bind(port(), *segments).assert_not_called()

    def test_flat_and_vxlan_networks_have_numbers_of_their_own(self):
        for one, place in ((segment('flat', vlan=None), ('vale0', 4095)),
                           (segment('vxlan', None), ('vale9', 4197))):
            found = self.bind(port(), one, of=TUNNELS).mock_calls[0].args[2]
            self.assertEqual(place, (found['vale_switch'],
                                     found['vale_segment']))

    def test_a_local_network_shares_no_number(self):
        is_alone = self.useFixture(fixtures.MockPatch(
            'neutron_clickos.uplinks.is_alone', autospec=True)).mock
        for alone in (True, False):
            is_alone.return_value = alone
            found = self.bind(port(), segment('local', None, None))
            self.assertEqual(alone, found.called)

    def test_vnic_types_of_hardware(self):
        for vnic_type in ('direct', 'macvtap', 'baremetal'):
            self.bind(port(**{'binding:vnic_type': vnic_type}),
                      segment()).assert_not_called()

    def test_mtu_limit_is_inclusive(self):
        self.bind(port(), segment(), mtu=9000).assert_called_once()
        self.bind(port(), segment(), mtu=9001).assert_not_called()
        self.bind(port(), segment(), mtu=None).assert_called_once()

    def test_more_addresses_than_neutron_stores(self):
        pairs = [{'ip_address': '10.1.0.%d' % i} for i in range(99)]
        self.bind(port(allowed_address_pairs=pairs),
                  segment()).assert_not_called()


class UpdatePortTest(TestCase):

    def setUp(self):
        super().setUp()
        self.binding = mock.Mock(vif_details={'vale_port': 'p1'})
        self.useFixture(fixtures.MockPatch(
            'neutron.objects.ports.PortBinding.get_object',
            return_value=self.binding))

    def update(self, original, current):
        self.driver.update_port_precommit(port_context(current, original))
        return self.binding.update.called

    CHANGES = (
        {'fixed_ips': [{'subnet_id': 's', 'ip_address': '10.0.1.6'}]},
        {'fixed_ips': []},
        {'allowed_address_pairs': [{'ip_address': '10.0.9.0/24'}]},
        {'port_security_enabled': False},
        {'admin_state_up': False},
    )

    def test_what_the_switch_enforces_is_kept(self):
        for change in self.CHANGES:
            self.assertTrue(self.update(bound(), bound(**change)))
            self.binding.update.reset_mock()
        kept = self.binding.vif_details
        self.assertEqual('p1', kept['vale_port'])
        self.assertIs(False, kept['vale_link_up'])
        self.update(bound(), bound(allowed_address_pairs=[
            {'ip_address': '10.0.9.1'}]))
        self.assertEqual(['10.0.1.5/32', '10.0.9.1/32'],
                         [each['ip'] for each
                          in self.binding.vif_details['vale_allowed']])

    def test_a_guests_mac_is_fixed(self):
        other = {'mac_address': 'fa:16:3e:00:00:02'}
        for before, after in ((bound(), bound(**other)),
                              (bound(**other), bound())):
            error = self.assertRaises(mech_vale.MacFixed, self.update,
                                      before, after)
            self.assertIn(PORT, str(error))
        self.update(bound(), port(**other))

    def test_more_addresses_than_neutron_stores(self):
        pairs = [{'ip_address': '10.1.0.%d' % i} for i in range(99)]
        error = self.assertRaises(
            mech_vale.TooManyAddresses, self.update, bound(),
            bound(allowed_address_pairs=pairs))
        self.assertIn('4000', str(error))
        self.assertFalse(self.binding.update.called)

    def test_other_ports_and_changes_keep_nothing(self):
        for change in self.CHANGES:
            self.assertFalse(self.update(port(), port(**change)))
            self.assertFalse(self.update(bound(), port(**change)))
            change = dict(change, **{'binding:vif_type': 'ovs'})
            self.assertFalse(self.update(port(), port(**change)))
        self.assertFalse(self.update(bound(), bound(
            name='x', status='DOWN', security_groups=['g'])))


class OwnerTest(TestCase):
    """Through the registry, as Neutron's core plugin tells of updates."""

    def setUp(self):
        super().setUp()
        self.asked, self.gone = [], set()
        self.driver._gone = self

    def look(self, server_id, project_id):
        """Ask Nova, which an update cannot do in its transaction."""
        self.assertFalse(self.in_transaction)
        self.asked.append((server_id, project_id))

    def __contains__(self, server_id):
        return server_id in self.gone

    def update(self, original, request):
        context = mock.Mock(project_id='project')
        self.in_transaction = False
        registry.publish(
            resources.PORT, events.BEFORE_UPDATE, self,
            payload=events.DBEventPayload(
                context, resource_id=PORT, states=(original, request)))
        self.in_transaction = True
        registry.publish(
            resources.PORT, events.PRECOMMIT_UPDATE, self,
            payload=events.DBEventPayload(
                context, request_body=request, states=(original,),
                resource_id=PORT, desired_state=dict(original, **request)))

    #: What a member may send by Neutron's policy.
    THEFTS = (
        {'device_id': '', 'device_owner': ''},
        {'device_id': ''},
        {'device_owner': ''},
        {'device_id': OTHER},
        {'device_owner': 'network:dhcp'},
        {'device_owner': 'network:router_interface_distributed'},
        {'device_id': OTHER, 'device_owner': 'compute:nova',
         'admin_state_up': False},
        # No change of the host: an admin's careless request.
        {'device_id': '', 'binding:host_id': 'compute1'},
    )

    def test_a_bound_port_stays_its_servers(self):
        for request in self.THEFTS:
            error = self.assertRaises(exceptions.CallbackFailure,
                                      self.update, bound(), request)
            refusal, = error.inner_exceptions
            self.assertIsInstance(refusal, mech_vale.PortPlugged)
            for part in (PORT, SERVER, 'binding:host_id'):
                self.assertIn(part, str(refusal))

    def test_one_of_a_server_that_nova_does_not_know_is_let_go(self):
        self.gone = {SERVER}
        self.update(bound(), self.THEFTS[0])
        self.assertEqual([(SERVER, 'project')], self.asked)
        for request in self.THEFTS[1:]:
            self.assertRaises(exceptions.CallbackFailure, self.update,
                              bound(), request)
        self.assertEqual(1, len(self.asked))

    def test_a_router_or_dhcp_agent_keeps_its_port(self):
        # Nova knows no server with the id of a router.
        self.gone = {SERVER}
        for owner in ('network:router_interface', 'network:dhcp',
                      'network:router_gateway', 'mine', ''):
            self.assertRaises(exceptions.CallbackFailure, self.update,
                              bound(device_owner=owner), self.THEFTS[0])
        self.assertEqual([], self.asked)

    def test_nova_unbinds_and_moves(self):
        for host in (None, '', 'compute2'):
            for request in self.THEFTS[:-1]:
                self.update(bound(), dict(request, **{
                    'binding:host_id': host}))
        self.assertEqual([], self.asked)

    def test_other_ports_and_updates_are_free(self):
        for request in self.THEFTS:
            self.update(port(), request)
            self.update(bound(**{'binding:vif_type': 'ovs'}), request)
            self.update(bound(**{'binding:vif_type': 'binding_failed'}),
                        request)
        self.update(bound(), {'name': 'x', 'admin_state_up': False,
                              'device_id': SERVER})


class NotifyTest(TestCase):

    def setUp(self):
        super().setUp()
        self.told = self.useFixture(fixtures.MockPatch(
            'neutron_clickos.port_rpc.AgentNotifier.ports_changed',
            autospec=True)).mock
        self.hosts = self.useFixture(fixtures.MockPatch(
            'neutron_clickos.uplinks.hosts_of', autospec=True,
            return_value=['compute3'])).mock
        self.networks = self.useFixture(fixtures.MockPatch(
            'neutron_clickos.port_rpc.AgentNotifier.networks_changed',
            autospec=True)).mock

    def test_the_hosts_of_a_network_learn_of_others(self):
        for states in ((bound(), bound(**{'binding:host_id': 'compute2'})),
                       (bound(), bound(status='DOWN'))):
            self.publish(events.AFTER_UPDATE, *states)
            hosts = {state['binding:host_id'] for state in states}
            self.assertEqual(
                sorted(hosts | {'compute3'}),
                [call.args[1] for call in self.networks.mock_calls])
            self.networks.reset_mock()
        self.publish(events.AFTER_UPDATE, bound(), bound(name='x'))
        self.assertEqual([], self.networks.mock_calls)
        self.publish(events.AFTER_DELETE, bound())
        self.assertEqual(2, len(self.networks.mock_calls))

    def publish(self, event, *states):
        registry.publish(resources.PORT, event, self,
                         payload=events.DBEventPayload(
                             None, resource_id=PORT, states=states))

    def assertTold(self, *hosts):
        self.assertEqual([(host, [PORT]) for host in hosts],
                         [call.args[1:] for call in self.told.mock_calls])
        self.told.reset_mock()

    def test_deleted(self):
        self.publish(events.AFTER_DELETE, bound())
        self.assertTold('compute1')
        self.publish(events.AFTER_DELETE, port())
        self.publish(events.AFTER_DELETE,
                     bound(**{'binding:vif_type': 'ovs'}))
        self.assertTold()

    def test_unbound_moved_and_disabled(self):
        for change in ({'binding:vif_type': 'unbound'},
                       {'binding:host_id': 'compute2'},
                       # a distributed router's
                       {'binding:vif_type': 'distributed',
                        'binding:host_id': ''},
                       {'device_id': OTHER}, {'admin_state_up': False}):
            self.publish(events.AFTER_UPDATE, bound(), bound(**change))
            self.assertTold('compute1')

    def test_what_the_switch_does_not_do(self):
        self.publish(events.AFTER_UPDATE, bound(), bound(name='x'))
        self.publish(events.AFTER_UPDATE, port(), bound())
        self.assertTold()


class RulesTest(TestCase):
    """What changes the rules of ports, as Neutron's registry tells it."""

    def setUp(self):
        super().setUp()
        plugin = mock.Mock(spec_set=('get_agents',))
        plugin.get_agents.return_value = [{'host': 'compute1'}]
        self.useFixture(fixtures.MockPatchObject(
            mech_vale.directory, 'get_plugin', new=lambda: plugin))
        self.cast = self.useFixture(fixtures.MockPatchObject(
            self.driver._notifier, '_cast', autospec=True)).mock
        cfg.CONF([])   # of the policy of contexts

    def test_hosts_hear_at_once_of_rules_and_address_groups(self):
        for resource, event in (
                (resources.SECURITY_GROUP_RULE, events.AFTER_CREATE),
                (resources.SECURITY_GROUP_RULE, events.AFTER_DELETE),
                (resources.ADDRESS_GROUP, events.AFTER_UPDATE)):
            self.cast.reset_mock()
            registry.publish(resource, event, self,
                             payload=events.DBEventPayload(None))
            self.cast.assert_called_once_with('compute1', 'policies_changed')

    def test_a_rule_without_room_is_a_conflict(self):
        payload = events.DBEventPayload(
            context.get_admin_context(),
            states=({'security_group_id': 'g'},))
        full = mech_vale.filters.TooManyRules(
            group='g', port=PORT, count=1025, max=1024)
        with mock.patch.object(mech_vale.filters, 'check_room',
                               autospec=True, side_effect=full) as check:
            error = self.assertRaises(
                exceptions.CallbackFailure, registry.publish,
                resources.SECURITY_GROUP_RULE, events.BEFORE_CREATE, self,
                payload=payload)
        self.assertEqual('g', check.call_args.args[1])
        inner, = error.inner_exceptions
        self.assertIsInstance(inner, lib_exceptions.Conflict)
        self.assertIn('1025', str(inner))
        self.assertIn('1024', str(inner))
