# SPDX-License-Identifier: Apache-2.0
"""What the tests share: a package on disk, a VNF instance, a cloud.

Tacker's and TOSCA's objects are the real ones; openstacksdk's proxies and
the keystoneauth adapter are replaced, with their signatures.
"""

import base64
import functools
import importlib.util
import json as json_module
import pathlib
import shutil
import sys
import tempfile
import types
import unittest
from unittest import mock

from keystoneauth1 import adapter
from openstack.compute.v2 import _proxy as compute_proxy
from openstack import exceptions as sdk_exceptions
from openstack.image.v2 import _proxy as image_proxy
from openstack.network.v2 import _proxy as network_proxy
from oslo_config import cfg
from oslo_utils import uuidutils
from tacker import objects

from tacker_clickos import conf
from tacker_clickos import vim

ROOT = pathlib.Path(__file__).resolve().parents[4]
TEMPLATES = ROOT / 'vnfd-templates'
VNF_ID = '3c8b4e8e-52e4-4c1e-9d33-4cf1b7a10a55'
VIM_ID = 'd2cfa1f3-9a1c-4c8f-8f5a-1b8a3d8b7a10'
LEFT_NET = '1c7dd4f0-0001-4000-8000-000000000001'
RIGHT_NET = '1c7dd4f0-0001-4000-8000-000000000002'
ACCESS = {'auth_url': 'http://127.0.0.1:5/v3', 'username': 'tenant',
          'password': 'not-to-be-logged', 'project_name': 'demo'}
#: The project of the VIM's credentials.
PROJECT = '0d4f6b9ec1a84d0fa0f6c8b0c31d5b11'


def build_package(target, template='firewall'):
    """Lay out a package as Tacker extracts it."""
    for name, content in build_csar().collect(TEMPLATES / template).items():
        path = target / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)


@functools.cache
def build_csar():
    """Return the module ``build_csar.py``, which is a program."""
    spec = importlib.util.spec_from_file_location(
        'build_csar', TEMPLATES / 'build_csar.py')
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class TestCase(unittest.TestCase):

    TEMPLATE = 'firewall'

    def setUp(self):
        super().setUp()
        objects.register_all()
        conf.register(cfg.CONF)
        cfg.CONF.set_override('allowed_urls', [ACCESS['auth_url']], 'clickos')
        self.addCleanup(cfg.CONF.clear_override, 'allowed_urls', 'clickos')
        self.package = pathlib.Path(tempfile.mkdtemp(prefix='clickos-'))
        self.addCleanup(shutil.rmtree, self.package)
        build_package(self.package, self.TEMPLATE)

    def patch(self, target, name, **kwargs):
        patcher = mock.patch.object(target, name, autospec=True, **kwargs)
        self.addCleanup(patcher.stop)
        return patcher.start()


class CloudTestCase(TestCase):
    """With a cloud behind openstack.connect and clickos-api."""

    def setUp(self):
        super().setUp()
        vim._connections.clear()
        self.addCleanup(vim._connections.clear)
        self.cloud = Cloud()
        self.patch(vim.openstack, 'connect', return_value=self.cloud)
        self.patch(adapter.Adapter, 'request',
                   side_effect=self.cloud.clickos_api)
        cfg.CONF.set_override('boot_timeout', 1, 'clickos')
        cfg.CONF.set_override('delete_timeout', 1, 'clickos')
        self.addCleanup(cfg.CONF.clear_override, 'boot_timeout', 'clickos')
        self.addCleanup(cfg.CONF.clear_override, 'delete_timeout', 'clickos')
        cfg.CONF.set_override('outage_timeout', 0, 'clickos')
        self.addCleanup(cfg.CONF.clear_override, 'outage_timeout', 'clickos')


@functools.cache
def _proxy(module):
    """Return a proxy's autospec; making one takes a tenth of a second."""
    return mock.create_autospec(module.Proxy, instance=True)


def resource(**values):
    return types.SimpleNamespace(**{'project_id': PROJECT, **values})


def image(image_id, name, groups=None, **values):
    """Return an operator's image.

    :param groups: of elements, as the image's property has them
    """
    return resource(**{
        'id': image_id, 'name': name, 'visibility': 'public', 'size': 1,
        'owner': 'operator', 'status': 'active', 'tags': [],
        'created_at': '2026-01-01T00:00:00Z',
        'properties': {} if groups is None else {'clickos_groups': groups},
        **values})


#: Stands for click-check, whose tests show that it answers so. It starts no
#: process, since its limits do not let it.
_CHECKER = '''
if sys.argv[1:3] != ['--groups', '--guest']:
    sys.exit(2)
if 'NoSuch' in text:
    sys.exit("<stdin>:1:9: unknown class 'NoSuch'")
if 'WireGuard' in text:
    print('wireguard WireGuard')
print('device ToDevice')
print('standard Queue')
'''


def use_checker(case, script=_CHECKER):
    """Let Tacker find a program that answers as click-check.

    :param script: Python; its input is text, and its folder is here
    :returns: its folder
    """
    folder = pathlib.Path(tempfile.mkdtemp(prefix='clickos-'))
    case.addCleanup(shutil.rmtree, folder)
    program = folder / 'click-check'
    program.write_text(
        f'#!{sys.executable}\nimport pathlib, sys\ntext = sys.stdin.read()\n'
        f'here = pathlib.Path({str(folder)!r})\n{script}')
    program.chmod(0o755)
    cfg.CONF.set_override('check_program', str(program), 'clickos')
    case.addCleanup(cfg.CONF.clear_override, 'check_program', 'clickos')
    return folder


def _like(found, query):
    """Return an iterator of those that have the values of a query.

    A list in the query permits each of its values.
    """
    return iter([each for each in found if all(
        getattr(each, name, None) in (
            value if isinstance(value, list) else [value])
        for name, value in query.items())])


def _fixed_ip(version, side, number):
    ip = ('10.0.%d.%d' if version == 4 else '2001:db8:%d::%x') % (
        side, number)
    return {'ip_address': ip, 'subnet_id': '%s%d' % (
        '6-' if version == 6 else '', side)}


def _subnet(subnet_id):
    if subnet_id.startswith('6-'):
        prefix = '2001:db8:%s::' % subnet_id[2:]
        return resource(cidr=prefix + '/64', gateway_ip=prefix + 'fe')
    return resource(cidr='10.0.%s.0/24' % subnet_id,
                    gateway_ip='10.0.%s.254' % subnet_id)


class Cloud:
    """The calls of Nova, Neutron, Glance and clickos-api in use."""

    def __init__(self):
        self.servers, self.ports, self.desired = {}, {}, {}
        self.groups = []
        #: {group: limits and servers}, and the names of the latter each time
        self.limits, self.declared = {}, []
        self.networks, self.server_groups = {}, {}
        self.calls = []
        self.fault = None          # every new server ends in ERROR with it
        self.refuse = {}           # server id -> (status, code, message)
        #: events that clickos-api shows
        self.starts = []
        self.vrrp = lambda server_id, handler: ''
        self.actions = []          # of every server, as Nova lists them
        self.reboot = {}           # changes the events of a reboot
        self.stuck = None          # no server can be deleted, for this reason
        self.port_error = None
        #: of networks that are not made here
        self.subnet = resource(id='v4', ip_version=4, ipv6_address_mode=None)
        self.pairs = []
        self.session = mock.sentinel.session
        self.current_project_id = PROJECT
        self.config = mock.Mock(
            spec_set=('get_region_name', 'set_session_constructor'),
            **{'get_region_name.return_value': 'RegionOne'})
        self.compute = self._compute()
        self.network = self._network()
        self.image = _proxy(image_proxy)
        self.images = [image('image', 'clickos')]
        self.image.images.side_effect = self._images

    def _images(self, tag=None, limit=None, sort=None, **query):
        return _like([each for each in self.images
                      if tag is None or tag in each.tags], query)

    def _compute(self):
        proxy = _proxy(compute_proxy)
        proxy.create_server.side_effect = self._create_server
        proxy.get_server.side_effect = self._get_server
        proxy.delete_server.side_effect = self._delete_server
        proxy.server_actions.side_effect = lambda server: iter(self.actions)
        proxy.get_server_action.side_effect = (
            lambda action, server: next(
                each for each in self.actions if each.request_id == action))
        proxy.post.side_effect = self._act
        proxy.servers.side_effect = lambda name=None: iter(
            [s for s in self.servers.values() if not name or name in s.name])
        proxy.server_groups.side_effect = (
            lambda: iter(list(self.server_groups.values())))
        proxy.create_server_group.side_effect = self._create_server_group
        proxy.delete_server_group.side_effect = (
            lambda group, ignore_missing: self.server_groups.pop(group, None))
        proxy.flavors.side_effect = lambda get_extra_specs=False: iter([
            resource(id='big', name='big', ram=512, vcpus=1),
            resource(id='small', name='small', ram=16, vcpus=1),
            resource(id='tiny', name='tiny', ram=4, vcpus=1)])
        return proxy

    def _network(self):
        proxy = _proxy(network_proxy)
        proxy.create_port.side_effect = self._create_port
        proxy.update_port.side_effect = (
            lambda port_id, **values:
            vars(self.ports[port_id]).update(values))
        proxy.set_tags.side_effect = lambda port, tags: setattr(
            port, 'tags', tags)
        proxy.delete_port.side_effect = (
            lambda port, ignore_missing: self.ports.pop(port, None))
        proxy.ports.side_effect = lambda **query: _like(self.ports.values(),
                                                        query)
        proxy.sfc_port_pairs.side_effect = lambda **query: _like(self.pairs,
                                                                 query)
        proxy.security_groups.side_effect = lambda **query: _like(
            self.groups, query)
        proxy.get_security_group.side_effect = self._get_group
        proxy.create_security_group.side_effect = self._create_group
        proxy.get_subnet.side_effect = _subnet
        proxy.subnets.side_effect = lambda network_id: iter(
            self.networks[network_id].subnets
            if network_id in self.networks else [self.subnet])
        proxy.networks.side_effect = lambda **query: _like(
            self.networks.values(), query)
        proxy.create_network.side_effect = self._create_network
        proxy.create_subnet.side_effect = (
            lambda network_id, **wanted:
            self.networks[network_id].subnets.append(resource(**wanted)))
        proxy.delete_network.side_effect = (
            lambda network, ignore_missing: self.networks.pop(network, None))
        proxy.get_network.side_effect = lambda network: self.networks.get(
            network) or resource(mtu=1500, project_id='of the operator')
        return proxy

    def _create_server(self, **wanted):
        server_id = uuidutils.generate_uuid()
        server = resource(
            id=server_id, name=wanted['name'], metadata=wanted['metadata'],
            status='ERROR' if self.fault else 'ACTIVE',
            fault={'message': self.fault}, wanted=wanted, task_state=None,
            power_state=1, host_id='host',
            image=resource(id=wanted.get('image_id')),
            flavor=self._flavor_copy(wanted.get('flavor_id')))
        self.servers[server_id] = server
        for network in wanted.get('networks', ()):
            self.ports[network['port']].device_id = server_id
        self.calls.append(('create', wanted['name']))
        return server

    def _flavor_copy(self, flavor_id):
        """Return a flavor as Nova shows it at a server."""
        flavor = next((each for each in self.compute.flavors()
                       if each.id == flavor_id), None)
        return flavor and resource(
            original_name=flavor.name, ram=flavor.ram, vcpus=flavor.vcpus,
            extra_specs={})

    def _act(self, path, json):
        """Reboot a server as the compute driver and Nova do."""
        _servers, server_id, _action = path.strip('/').split('/')
        self.calls.append(('act', server_id, json))
        server = self._get_server(server_id)
        request = 'req-%d' % len(self.calls)
        events = {
            'clickos_start': {'result': 'Success', 'details': None},
            'compute_reboot_instance': {'result': 'Success',
                                        'finish_time': 'now'}}
        events = {name: event for name, event in {
            **events, **self.reboot.get('events', {})}.items() if event}
        self.actions.append(resource(
            request_id=request, action='reboot', events=[
                {'event': name, **event} for name, event in events.items()]))
        vars(server).update({'status': 'ACTIVE', 'power_state': 1},
                            **self.reboot.get('server', {}))
        return mock.Mock(spec_set=('status_code', 'headers'), status_code=202,
                         headers={'x-openstack-request-id': request})

    def _get_server(self, server_id):
        if server_id not in self.servers:
            raise sdk_exceptions.NotFoundException()
        return self.servers[server_id]

    def _delete_server(self, server_id, ignore_missing):
        self.calls.append(('delete', server_id))
        if self.stuck:
            self.servers[server_id].status = 'ERROR'
            self.servers[server_id].fault = {'message': self.stuck}
            return
        self.servers.pop(server_id, None)
        for port in self.ports.values():
            if getattr(port, 'device_id', None) == server_id:
                port.device_id = ''

    def _create_network(self, **wanted):
        network = resource(id=uuidutils.generate_uuid(), subnets=[],
                           mtu=1500, **wanted)
        self.networks[network.id] = network
        return network

    def _create_server_group(self, **wanted):
        group = resource(id=uuidutils.generate_uuid(), **wanted)
        self.server_groups[group.id] = group
        return group

    def _get_group(self, group_id):
        for group in self.groups:
            if group.id == group_id:
                return group
        raise sdk_exceptions.NotFoundException()

    def _create_group(self, name, description):
        self.groups.append(resource(id='group-%d' % len(self.groups),
                                    name=name))
        return self.groups[-1]

    def _create_port(self, **wanted):
        if self.port_error:
            raise sdk_exceptions.BadRequestException(
                details=self.port_error)
        number = len(self.ports) + 1
        side = 1 if wanted['network_id'] == LEFT_NET else 2
        port = resource(
            id=uuidutils.generate_uuid(), name=wanted['name'],
            description=wanted['description'],
            network_id=wanted['network_id'], wanted=wanted, tags=[],
            allowed_address_pairs=[
                {'mac_address': None, **each} for each in
                wanted.get('allowed_address_pairs', ())],
            device_id='', device_owner='',
            mac_address=wanted.get('mac_address',
                                   'fa:16:3e:00:00:%02x' % number),
            fixed_ips=[_fixed_ip(version, side, number) for version
                       in self._versions(wanted['network_id'])])
        self.ports[port.id] = port
        return port

    def _versions(self, network_id):
        """Return the IP versions of a network; those made here have IPv4."""
        network = self.networks.get(network_id)
        subnets = network.subnets if network else [self.subnet]
        return sorted({getattr(subnet, 'ip_version', 4)
                       for subnet in subnets}) or [4]

    def clickos_api(self, _adapter, path, method, json=None, **options):
        kind, server_id, what = [*path.split('/')[2:], None, None][:3]
        what = what or kind
        self.calls.append((method, server_id, what, json))
        if what == 'handlers' and method == 'GET':
            what = path.rpartition('/')[2]
        status, body = self._api_answer(server_id, what, method, json)
        return mock.Mock(
            spec_set=('status_code', 'content', 'json', 'text'),
            status_code=status, content=b'x' if body is not None else b'',
            text=str(body), **{'json.return_value': body})

    def _api_answer(self, server_id, what, method, json):
        status, code, message = self.refuse.get(server_id, (0, '', ''))
        if status and what != 'desired-state':
            return status, {'error': {'code': code, 'message': message}}
        if what == 'states':
            return self._answer_of_state(server_id, method, json)
        if what == 'limits':
            return self._answer_of_limits(server_id, method, json)
        if what == 'roles':
            self.ports[server_id].roles = json['roles']
            return 200, json
        if what == 'flows':
            return 200, {'flows': 7}
        if what == 'events':
            return 200, {'events': self.starts}
        if what.startswith('vrrp.'):
            return 200, {'value': self.vrrp(server_id, what)}
        state = self.state(server_id)
        if method == 'POST':
            state['writes'] = _overlaid(state['writes'], json['writes'])
            state['revision'] += 1
            return 200, {'revision': state['revision']}
        return 200, state

    def _answer_of_limits(self, group, method, json):
        if method == 'DELETE':
            return (204, None) if self.limits.pop(group, None) else (
                404, {'error': {'code': 'no-such-limits',
                                'message': 'none'}})
        self.limits[group] = json
        self.declared.append(sorted(
            self.servers[server].name[:6] for server in json['servers']))
        return 200, {'limits': []}

    def _answer_of_state(self, state_id, method, json):
        if method == 'DELETE':
            return (204, None) if self.desired.pop(state_id, None) else (
                404, {'error': {'code': 'no-such-state', 'message': 'none'}})
        if method == 'POST':
            state_id = uuidutils.generate_uuid()
        elif state_id not in self.desired:
            return 404, {'error': {'code': 'no-such-state',
                                   'message': 'none'}}
        old = self.desired.get(state_id, {'revision': 0, 'writes': []})
        kept = [pair for pair in old['writes']
                if pair[0] in json.get('keep', [pair[0]])]
        new = {'config': json['config'],
               'writes': _overlaid(json['writes'], kept)}
        changed = new != {key: old.get(key) for key in new}
        self.desired[state_id] = {**new, 'revision': old['revision'] + changed}
        return 201, {'id': state_id, 'changed': changed}

    def state(self, server_id):
        """Return the state that a server's user_data refers to."""
        user_data = self.servers[server_id].wanted['user_data']
        reference = json_module.loads(base64.b64decode(user_data))
        return self.desired[reference['state']]


def _overlaid(writes, newer):
    names = {name for name, _value in newer}
    return [pair for pair in writes if pair[0] not in names] + newer


def instantiate_request(properties=None, **link):
    """Return an InstantiateVnfRequest with both networks."""
    return objects.InstantiateVnfRequest.obj_from_primitive({
        'flavour_id': 'simple',
        'additional_params': ({'clickos_properties': properties}
                              if properties else {}),
        'ext_virtual_links': [
            {'id': cp, 'resource_id': network, 'ext_cps': [
                {'cpd_id': cp, 'cp_config': [dict(
                    {'cp_protocol_data': [
                        {'layer_protocol': 'IP_OVER_ETHERNET'}]}, **link)]}]}
            for cp, network in (('left', LEFT_NET), ('right', RIGHT_NET))]},
        context=None)


def vnf_instance(guests=1, **values):
    """Return a VNF instance before instantiation, as Tacker prepares it."""
    info = objects.InstantiatedVnfInfo(
        flavour_id='simple', vnf_instance_id=VNF_ID)
    info.reinitialize()
    info.vnfc_resource_info = [
        objects.VnfcResourceInfo(
            id=uuidutils.generate_uuid(), vdu_id='VDU1',
            compute_resource=objects.ResourceHandle(),
            storage_resource_ids=[],
            vnfc_cp_info=[objects.VnfcCpInfo(
                id=uuidutils.generate_uuid(), cpd_id=cp)
                for cp in ('left', 'right')])
        for _number in range(guests)]
    instance = objects.VnfInstance(
        id=VNF_ID, tenant_id='t', vnf_instance_name='fw', vnfd_id='vnfd',
        instantiation_state='NOT_INSTANTIATED', vnf_metadata={}, **values)
    instance.instantiated_vnf_info = info
    return instance


def vim_connection():
    return objects.VimConnectionInfo(id='vim', vim_id=VIM_ID,
                                     vim_type='openstack',
                                     access_info=dict(ACCESS))
