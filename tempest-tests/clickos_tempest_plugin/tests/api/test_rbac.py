# SPDX-License-Identifier: Apache-2.0
"""Who may do what: each route of clickos-api for each role.

The users are made here, since Tempest gives its own users the role member.
"""

import json
import uuid

from tempest import clients
from tempest.common import credentials_factory
from tempest import config
from tempest.lib.common.utils import data_utils
from tempest.lib import decorators

from clickos_tempest_plugin.common import csar
from clickos_tempest_plugin.tests import base

CONF = config.CONF

#: name: (method, path below the guest, body, status if permitted)
READS = {
    'list handlers': ('GET', '/handlers', None, (200,)),
    'read a handler': ('GET', '/handlers/fw.config', None, (200,)),
    'read handlers': ('POST', '/reads', {'names': ['fw.config']}, (200,)),
    # This handler takes none: the guest says so to those who may ask it.
    'read with a parameter': ('GET', '/handlers/fw.config?parameter=x', None,
                              (400,)),
    'read with parameters': ('POST', '/reads', {
        'names': [['fw.config', 'x'], 'fw.config']}, (200,)),
    'list ports': ('GET', '/ports', None, (200,)),
    'show the state': ('GET', '/desired-state', None, (200,)),
    'list changes': ('GET', '/changes', None, (200,)),
    # Neither this change nor this revision exists.
    'show a change': ('GET', '/changes/999999', None, (404,))}
WRITES = {
    'write a handler': ('PUT', '/handlers/fw.config', {'value': 'deny all'},
                        (200, 202)),
    'write handlers': ('POST', '/handlers',
                       {'writes': [['fw.config', 'deny all']]}, (200, 202)),
    # The descriptor of a VNF owns the configuration.
    'replace the configuration': ('PUT', '/configuration',
                                  {'config': 'Idle -> Discard;'}, (409,)),
    'restore a revision': ('POST', '/desired-state', {'revision': 999999},
                           (404,)),
    'delete the state': ('DELETE', '/desired-state', None, (204,))}
ALL = {**READS, **WRITES}
STATE = ('show the state', 'delete the state')

#: (role, in the guest's project): the calls that are permitted
MATRIX = {
    ('reader', True): tuple(READS), ('member', True): tuple(ALL),
    ('manager', True): tuple(ALL), ('admin', True): tuple(ALL),
    ('service', True): ('show the state',),
    ('reader', False): (), ('member', False): (), ('manager', False): (),
    # Nova starts any guest with its state, and an operator may forget it.
    ('admin', False): STATE, ('service', False): ('show the state',)}
REFUSED = (403, 404)

_STATE = {'config': 'Idle -> Discard;', 'writes': []}
_START = {'number': 0, 'revision': 0, 'incarnation': str(uuid.uuid4()),
          'server_id': str(uuid.uuid4()), 'project_id': 'none'}
#: As ALL, for a state to which user_data refers.
OF_STATES = {
    'show it': ('GET', '', None, 200),
    'replace it': ('PUT', '', _STATE, 200),
    'delete it': ('DELETE', '', None, 204)}
STATES_MATRIX = {
    ('reader', True): ('show it',), ('member', True): tuple(OF_STATES),
    ('manager', True): tuple(OF_STATES), ('admin', True): tuple(OF_STATES),
    ('service', True): ('show it',),
    ('reader', False): (), ('member', False): (), ('manager', False): (),
    ('admin', False): ('show it', 'delete it'),
    ('service', False): ('show it',)}
STARTERS = ('admin', 'service')
_ROLES = {'roles': ['dhcp-server']}
PORT_ROLE_GIVERS = (('member', True), ('manager', True), ('admin', True),
                    ('admin', False))


class RbacTest(base.ClickOSTest):
    """One firewall; users of each role in its project and in another one."""

    credentials = ['primary', 'admin', 'alt']

    @classmethod
    def resource_setup(cls):
        super().resource_setup()
        cls.vnf_id = cls.tenant.firewall(csar.firewall(), ['deny all'],
                                         cls.addClassResourceCleanup)
        cls.server_id = cls.tenant.server_id(cls.vnf_id)
        cls.roles = {role['name']: role['id'] for role in
                     cls.os_admin.roles_v3_client.list_roles()['roles']}
        cls.managers = {key: cls.user(*key) for key in MATRIX}

    @classmethod
    def user(cls, role, is_owner):
        """Return the clients of a new user with one role in a project."""
        owner = cls.os_primary if is_owner else cls.os_alt
        project_id = owner.credentials.project_id
        password = data_utils.rand_password()
        users = cls.os_admin.users_v3_client
        user = users.create_user(name=data_utils.rand_name(role),
                                 password=password)['user']
        cls.addClassResourceCleanup(users.delete_user, user['id'])
        cls.os_admin.roles_v3_client.create_user_role_on_project(
            project_id, user['id'], cls.roles[role])
        return clients.Manager(credentials_factory.get_credentials(
            user_id=user['id'], username=user['name'], password=password,
            project_id=project_id, project_name=owner.credentials.project_name,
            user_domain_id=user['domain_id'],
            project_domain_id=owner.credentials.project_domain_id,
            identity_version='v3'))

    def status(self, client, method, url, body=None):
        """Send a request; return the status."""
        resp, _ = client.raw_request(
            f'{client.base_url}/{url}', method,
            headers={**client.get_headers(), 'X-Auth-Token': client.token},
            body=None if body is None else json.dumps(body))
        return resp.status

    def ask(self, key, url_of):
        """Return {call: status} of all calls of a user."""
        client = self.managers[key].clickos.ClickOSClient()
        return {name: self.status(client, method, url_of + path, body)
                for name, (method, path, body, _) in ALL.items()}

    def judge(self, url_of):
        """Return what differs from the matrix."""
        return {
            (*key, name): status for key, permitted in MATRIX.items()
            for name, status in self.ask(key, url_of).items()
            if status not in (ALL[name][3] if name in permitted
                              else REFUSED)}

    @decorators.attr(type='gate')
    @decorators.idempotent_id('5b2c7c0e-6d52-4be8-9f0b-0f2d3c1f8a01')
    def test_each_route_of_a_server(self):
        self.assertEqual({}, self.judge(f'v1/servers/{self.server_id}'))

    @decorators.idempotent_id('5b2c7c0e-6d52-4be8-9f0b-0f2d3c1f8a02')
    def test_each_route_of_a_vnf_in_its_project(self):
        found = self.judge(f'v1/vnfs/{self.vnf_id}')
        # Tacker shows a VNF to readers of its project only, so the roles of
        # others lead to no server.
        self.assertEqual({}, {
            key: status for key, status in found.items()
            if status not in REFUSED or key[1] and key[0] != 'service'})

    @decorators.idempotent_id('5b2c7c0e-6d52-4be8-9f0b-0f2d3c1f8a06')
    def test_each_route_of_a_state(self):
        owner = self.os_primary.credentials.project_id
        for key, manager in self.managers.items():
            client = manager.clickos.ClickOSClient()
            state_id = self.tenant.clickos.create_state(_STATE['config'])
            self.addCleanup(self.status, self.tenant.clickos, 'DELETE',
                            f'v1/states/{state_id}')
            for name, (method, path, body, status) in OF_STATES.items():
                permitted = name in STATES_MATRIX[key]
                self.assertIn(
                    self.status(
                        client, method,
                        f'v1/states/{state_id}{path}?project_id={owner}',
                        body),
                    (status,) if permitted else REFUSED, f'{key} {name}')

    @decorators.attr(type='gate')
    @decorators.idempotent_id('5b2c7c0e-6d52-4be8-9f0b-0f2d3c1f8a07')
    def test_only_services_start_states(self):
        for key, manager in self.managers.items():
            # No server has this id, so the service notes nothing.
            self.assertEqual(
                key[0] not in STARTERS, self.status(
                    manager.clickos.ClickOSClient(), 'POST',
                    f'v1/states/{_START["server_id"]}/starts', _START)
                in REFUSED, key)

    @decorators.attr(type='gate')
    @decorators.idempotent_id('5b2c7c0e-6d52-4be8-9f0b-0f2d3c1f8a08')
    def test_roles_of_ports_are_for_owners_of_networks(self):
        for key, manager in self.managers.items():
            port = self.tenant.make_port('left', self.addCleanup)
            self.assertEqual(
                key not in PORT_ROLE_GIVERS, self.status(
                    manager.clickos.ClickOSClient(), 'PUT',
                    f'v1/ports/{port["id"]}/roles', _ROLES) in REFUSED, key)

    @decorators.idempotent_id('5b2c7c0e-6d52-4be8-9f0b-0f2d3c1f8a09')
    def test_no_role_on_a_network_that_another_project_shares(self):
        rbac = self.os_primary.networks_client
        network = self.tenant.networks['left'].id
        made = rbac.create_resource('/rbac-policies', {'rbac_policy': {
            'object_type': 'network', 'object_id': network,
            'action': 'access_as_shared',
            'target_tenant': self.os_alt.credentials.project_id}})
        self.addCleanup(rbac.delete_resource,
                        f'/rbac-policies/{made["rbac_policy"]["id"]}')
        ports = self.os_alt.ports_client
        port = ports.create_port(network_id=network)['port']
        self.addCleanup(ports.delete_port, port['id'])
        url = f'v1/ports/{port["id"]}/roles'
        self.assertEqual(403, self.status(
            self.managers['member', False].clickos.ClickOSClient(), 'PUT',
            url, _ROLES))
        # The network's owner does not own the port.
        self.assertEqual(404, self.status(
            self.managers['member', True].clickos.ClickOSClient(), 'PUT',
            url, _ROLES))

    @decorators.idempotent_id('5b2c7c0e-6d52-4be8-9f0b-0f2d3c1f8a03')
    def test_life_cycle_of_a_vnf(self):
        instances = 'vnflcm/v1/vnf_instances'
        calls = {'show': ('GET', '', None),
                 'update': ('PATCH', '', {'vnfInstanceName': 'x'}),
                 'heal': ('POST', '/heal', {'cause': 'x'}),
                 'scale': ('POST', '/scale', {'type': 'SCALE_OUT',
                                              'aspectId': 'x'}),
                 'terminate': ('POST', '/terminate', {
                     'terminationType': 'FORCEFUL'}),
                 'delete': ('DELETE', '', None)}
        for key, manager in self.managers.items():
            role, is_owner = key
            # Tacker's administrators change VNFs of all projects.
            if role == 'admin' or is_owner and role not in ('reader',
                                                            'service'):
                continue
            client = manager.tacker.TackerClient()
            for name, (method, path, body) in calls.items():
                status = self.status(
                    client, method, f'{instances}/{self.vnf_id}{path}', body)
                permitted = name == 'show' and key == ('reader', True)
                self.assertIn(status, (200,) if permitted else (403, 404),
                              f'{key} {name}')
        self.assertEqual('INSTANTIATED', self.tenant.tacker.show_vnf(
            self.vnf_id)['instantiationState'])

    @decorators.idempotent_id('5b2c7c0e-6d52-4be8-9f0b-0f2d3c1f8a04')
    def test_without_a_token(self):
        client = self.tenant.clickos
        for name, (method, path, body, _) in ALL.items():
            for token in ('', 'a' * 32):
                resp, _ = client.raw_request(
                    f'{client.base_url}/v1/servers/{self.server_id}{path}',
                    method, headers={'X-Auth-Token': token},
                    body=None if body is None else json.dumps(body))
                self.assertEqual(401, resp.status, name)

    @decorators.idempotent_id('5b2c7c0e-6d52-4be8-9f0b-0f2d3c1f8a05')
    def test_requests_that_are_none(self):
        guest = f'v1/servers/{self.server_id}'
        for expected, method, url, body in (
                (404, 'GET', 'v1/nothing', None),
                (404, 'GET', f'{guest}/nothing', None),
                (405, 'PATCH', f'{guest}/handlers', {}),
                (405, 'DELETE', f'{guest}/handlers/fw.config', None),
                (400, 'GET', 'v1/servers/none/handlers', None),
                (400, 'GET', 'v1/chains/none', None),
                (400, 'PUT', f'{guest}/handlers/fw.config', []),
                (400, 'PUT', f'{guest}/handlers/fw.config', {'value': 1}),
                (400, 'PUT', f'{guest}/handlers/fw.config', {}),
                (400, 'POST', f'{guest}/handlers', {'writes': []}),
                (400, 'POST', f'{guest}/handlers', {'writes': [['a']]}),
                (400, 'PUT', f'{guest}/configuration', {'config': None}),
                (400, 'GET', f'{guest}/handlers/fw.config?parameter='
                 + 'x' * 256, None),
                (400, 'GET', f'{guest}/handlers/fw.config?parameter=%00',
                 None),
                (400, 'GET', f'{guest}/handlers/fw.config?parameter=%0a',
                 None),
                (400, 'POST', f'{guest}/reads', {'names': [[]]}),
                (400, 'POST', f'{guest}/reads', {'names': [['fw.config']]}),
                (400, 'POST', f'{guest}/reads', {
                    'names': [['fw.config', 1]]}),
                (400, 'POST', f'{guest}/reads', {
                    'names': [['fw.config', 'x', 'y']]}),
                (400, 'POST', f'{guest}/reads', {
                    'names': [['fw.config', '\ud800']]}),
                (400, 'POST', f'{guest}/reads', {
                    'names': ['fw.config'] * 65})):
            self.assertEqual(expected, self.status(
                self.tenant.clickos, method, url, body), (method, url, body))
