# SPDX-License-Identifier: Apache-2.0
"""A thing of another project is never taken for the VNF's."""

import ast
import pathlib

from openstack.compute.v2 import _proxy as compute_proxy
from openstack.image.v2 import _proxy as image_proxy
from openstack.network.v2 import _proxy as network_proxy

from tacker_clickos import exception
from tacker_clickos import guests
from tacker_clickos import images
from tacker_clickos import networks
from tacker_clickos import own
from tacker_clickos import ports
from tacker_clickos import state
from tacker_clickos.vnfd import model
from tests.unit.tacker_clickos import base
from tests.unit.tacker_clickos import test_infra_driver

_OTHER = 'another-project'
_MARK = 'clickos-vnf:' + base.VNF_ID
_REPO = pathlib.Path(__file__).resolve().parents[4]


class LookAlikeTest(test_infra_driver.DriverTestCase):
    """Another project shares things with the names and marks of a VNF."""

    def setUp(self):
        super().setUp()
        self.shared = base.resource(id='theirs', name=ports.GROUP,
                                    project_id=_OTHER)
        self.cloud.groups.append(self.shared)
        self.cloud.ports['port'] = base.resource(
            id='port', name='VDU1-0-left', description=_MARK, fixed_ips=[],
            network_id=base.LEFT_NET, mac_address='fa:16:3e:ff:ff:ff',
            project_id=_OTHER)
        self.cloud.networks['net'] = base.resource(
            id='net', name='inner-' + base.VNF_ID, description=_MARK,
            subnets=[], mtu=1500, project_id=_OTHER)
        self.cloud.servers['server'] = base.resource(
            id='server', name='VDU1-0-' + base.VNF_ID, status='ACTIVE',
            metadata={'clickos_vnf': base.VNF_ID}, project_id=_OTHER)
        self.cloud.server_groups['group'] = base.resource(
            id='group', name='apart-' + base.VNF_ID, project_id=_OTHER)
        for key, visibility in (('a', 'shared'), ('b', 'community')):
            self.cloud.images.append(base.resource(
                id=key, name='clickos', visibility=visibility, owner=_OTHER))

    def own_server(self):
        (server,) = [each for each in self.cloud.servers.values()
                     if each.project_id == base.PROJECT]
        return server

    def assertTheirsStay(self):
        for found, key in ((self.cloud.ports, 'port'),
                           (self.cloud.networks, 'net'),
                           (self.cloud.servers, 'server'),
                           (self.cloud.server_groups, 'group')):
            self.assertIn(key, found)

    def test_a_life(self):
        self.instantiate()
        wanted = self.own_server().wanted
        self.assertNotIn({'port': 'port'}, wanted['networks'])
        self.assertEqual('image', wanted['image_id'])
        for port in self.cloud.ports.values():
            if port.project_id == base.PROJECT:
                self.assertNotEqual(['theirs'],
                                    port.wanted['security_groups'])
        guests.Guests(self.cloud, base.VNF_ID).sweep()
        self.assertTheirsStay()

    def test_networks(self):
        record = state.Record()
        link = model.InternalLink('inner', '192.0.2.0/24')
        made = networks.ensure(self.cloud, base.VNF_ID, {'inner': link},
                               record)
        self.assertNotEqual('net', made['inner'])
        self.assertEqual(made, record.networks)
        # Its id is known from here on, whatever its name is.
        self.cloud.networks[made['inner']].name = 'renamed'
        self.assertEqual(made, networks.ensure(
            self.cloud, base.VNF_ID, {'inner': link}, record))
        record.networks['inner'] = 'net'
        self.assertNotEqual('net', networks.ensure(
            self.cloud, base.VNF_ID, {'inner': link}, record)['inner'])
        networks.remove(self.cloud, base.VNF_ID)
        self.assertTheirsStay()

    def test_images(self):
        self.cloud.images[:] = self.cloud.images[1:]
        with self.assertRaisesRegex(
                exception.ResourceNotUsable,
                'image clickos: is neither an active public'):
            images.choose(self.cloud, 'clickos', None)
        self.cloud.images.append(base.image(
            'z', 'clickos', visibility='private', owner=base.PROJECT))
        self.assertEqual('z', images.choose(self.cloud, 'clickos', None))

    def test_server_groups(self):
        self.assertEqual([], own.server_groups(self.cloud))
        self.cloud.server_groups['early'] = base.resource(
            id='early', name='x', project_id=None)
        self.assertEqual(1, len(own.server_groups(self.cloud)))

    def test_port_pairs(self):
        ends = {'ingress': 'in', 'egress': 'out'}
        self.cloud.pairs = [base.resource(id='p', project_id=_OTHER, **ends)]
        self.assertEqual([], list(own.port_pairs(self.cloud, ['in'])))
        mine = base.resource(id='q', **ends)
        self.cloud.pairs.append(mine)
        for port_id in ends.values():
            self.assertEqual([mine], list(own.port_pairs(
                self.cloud, [port_id, 'another'])))
        self.assertEqual([], list(own.port_pairs(self.cloud, ['another'])))

    def test_many_ports_are_asked_for_in_parts(self):
        asked = self.cloud.network.sfc_port_pairs
        asked.reset_mock()      # the proxy is that of all tests
        self.assertEqual([], list(own.port_pairs(
            self.cloud, [f'p{number:03}' for number in range(90)])))
        self.assertEqual([40, 40, 40, 40, 10, 10], [
            len(call.kwargs.get('ingress') or call.kwargs['egress'])
            for call in asked.mock_calls])

    def test_credentials_of_no_project(self):
        self.cloud.current_project_id = None
        with self.assertRaisesRegex(exception.ResourceNotUsable,
                                    'credentials: are not for a project'):
            own.ports(self.cloud, _MARK)


class RecordTest(test_infra_driver.DriverTestCase):

    def test_the_group_is_known_by_its_id(self):
        self.instantiate()
        (group,) = self.cloud.groups
        self.assertEqual(group.id, state.Record.of(self.info).group)
        group.name = 'renamed'
        found = own.security_group(self.cloud, group.id, ports.GROUP)
        self.assertIs(group, found)
        self.assertIsNone(own.security_group(self.cloud, 'gone',
                                             ports.GROUP))
        group.project_id = _OTHER
        self.assertIsNone(own.security_group(self.cloud, group.id,
                                             ports.GROUP))

    def test_what_a_tenant_wrote_there_does_not_count(self):
        request = base.instantiate_request()
        request.additional_params['clickos_resources'] = {
            'group': 'theirs', 'networks': {'inner': 'net'}}
        self.info.additional_params = dict(request.additional_params)
        self.instantiate(request)
        self.assertEqual(state.Record('group-0', {}),
                         state.Record.of(self.info))
        for odd in (None, 'x', [], {'group': [], 'networks': 7}):
            state.set_param(self.info, state.RECORD, odd)
            self.assertEqual(state.Record(), state.Record.of(self.info))


class OneModuleTest(base.TestCase):
    """Only these functions list or find things by what others can choose."""

    #: {module: the calls on proxies that it makes}
    KNOWN = {
        'tacker-plugin/tacker_clickos/own.py': {
            'ports', 'networks', 'security_groups', 'sfc_port_pairs',
            'servers', 'server_groups', 'images'},
        # The module knows the network or server by its id. Flavors are the
        # operator's.
        'tacker-plugin/tacker_clickos/networks.py': {'subnets'},
        'tacker-plugin/tacker_clickos/ports.py': {'subnets'},
        'tacker-plugin/tacker_clickos/servers.py': {'flavors',
                                                    'server_actions'},
        'interfaces/clickos_client/chains.py': {
            'networks', 'ports', 'sfc_port_chains', 'sfc_port_pairs',
            'sfc_port_pair_groups'},
        # Those of chains are matched by ids. Nova finds the project's only.
        'interfaces/clickos_client/fusion.py': {
            'sfc_port_chains', 'sfc_port_pair_groups', 'find_flavor',
            'find_server'},
        # Classifiers, groups and pairs are matched by ids of the chains.
        'tacker-plugin/clickos_dashboard/api/chains.py': {
            'sfc_port_chains', 'sfc_port_pair_groups', 'sfc_port_pairs',
            'sfc_flow_classifiers'},
        'tacker-plugin/clickos_osc/v1/chain.py': {
            'sfc_port_chains', 'find_flavor'},
        'tacker-plugin/clickos_osc/v1/event.py': {'server_actions'},
        'tacker-plugin/clickos_osc/v1/guest.py': {'find_server'},
        'tacker-plugin/clickos_osc/v1/hops.py': {'find_port', 'find_server'},
        # The project's own ports, and servers by ids of Tacker's record.
        'tacker-plugin/clickos_osc/v1/vnf.py': {'ports', 'find_server'},
    }
    _PROXIES = {'network', 'compute', 'image', 'networkclient'}
    _LISTS = {name for module in (compute_proxy, image_proxy, network_proxy)
              for name in dir(module.Proxy)
              if name.endswith('s') and not name.startswith(
                  ('_', 'get_', 'create_', 'update_', 'delete_', 'add_',
                   'remove_', 'set_'))}

    maxDiff = None

    def test_no_other_module_lists_things(self):
        found = {}
        for part in ('tacker-plugin', 'interfaces/clickos_client',
                     'nova-driver'):
            for path in sorted((_REPO / part).rglob('*.py')):
                if 'tests' not in path.parts:
                    calls = set(self._calls(ast.parse(path.read_text())))
                    if calls:
                        found[str(path.relative_to(_REPO))] = calls
        self.assertEqual(self.KNOWN, found)

    def _calls(self, tree):
        """Yield the lists and finds that a module calls on proxies."""
        for node in ast.walk(tree):
            if not (isinstance(node, ast.Call)
                    and isinstance(node.func, ast.Attribute)):
                continue
            owner = node.func.value
            name = getattr(owner, 'attr', getattr(owner, 'id', None))
            verb = node.func.attr
            if name in self._PROXIES and (
                    verb.startswith('find_') or verb in self._LISTS):
                yield verb
