# SPDX-License-Identifier: Apache-2.0
"""A second tenant that owns nothing, with ids, names and addresses of others.

It shares a network with the first one. The routes are read from clickos-api's
description and from the filter before Tacker, so a new one is tried, too.
"""

import copy
import itertools
import json

from tacker_clickos import routes
from tempest.lib.common.utils import data_utils
from tempest.lib import decorators

from clickos_tempest_plugin.common import csar
from clickos_tempest_plugin.tests import base

RULES = ['allow icmp', 'deny all']
REFUSED = (403, 404)
#: Where Tacker serves the APIs of routes.APIS.
PREFIXES = {'vims': 'v1.0', 'packages': 'vnfpkgm/v1',
            'lifecycle': 'vnflcm/v1'}
#: A value of each property and parameter of clickos-api that is no id.
VALUES = {
    'name': 'fw.config', 'number': 1, 'value': 'deny all', 'revision': 0,
    'config': 'Idle -> Discard;', 'writes': [['fw.config', 'deny all']],
    'roles': ['dhcp-server'], 'max_age': 1,
    'names': ['fw.config', ['fw.config', 'x']],
    'incarnation': '77777777-2222-4333-8444-555555555555'}
#: Bodies of Tacker's operations, by the last part of the path.
BODIES = {
    'instantiate': {'flavourId': 'simple'}, 'heal': {'cause': 'x'},
    'terminate': {'terminationType': 'FORCEFUL'},
    'scale': {'type': 'SCALE_OUT', 'aspectId': 'x'},
    'change_ext_conn': {'extVirtualLinks': []}}


class StrangerTest(base.ClickOSTest):
    """One firewall of the first tenant."""

    credentials = ['primary', 'admin', 'alt']

    @classmethod
    def resource_setup(cls):
        super().resource_setup()
        cls.vnf_id = cls.tenant.firewall(csar.firewall(), RULES,
                                         cls.addClassResourceCleanup)
        cls.server_id = cls.tenant.server_id(cls.vnf_id)
        cls.clickos = cls.tenant.clickos
        cls.state_id = cls.clickos.create_state('Idle -> Discard;')
        cls.addClassResourceCleanup(cls.clickos.delete_state, cls.state_id)
        cls.secret_id = cls.clickos.create_secret('it', 'hidden')['id']
        cls.addClassResourceCleanup(cls.clickos.delete_secret, cls.secret_id)
        cls.ports = cls.os_primary.ports_client.list_ports(
            device_id=cls.server_id)['ports']
        cls._share_a_network()
        vnf = cls.tenant.tacker.show_vnf(cls.vnf_id)
        cls.foreign = {
            'server': cls.server_id, 'vnf': cls.vnf_id,
            'state': cls.state_id, 'secret': cls.secret_id,
            'network': cls.network_id, 'port': cls.ports[0]['id'],
            'vim': cls.tenant.vim_id,
            'vnfd': vnf['vnfdId'],
            'operation': cls.tenant.last_operation(cls.vnf_id)}

    @classmethod
    def _share_a_network(cls):
        """Let the second tenant use a network of the first one."""
        cls.network_id = cls.ports[0]['network_id']
        rbac = cls.os_primary.networks_client
        made = rbac.create_resource('/rbac-policies', {'rbac_policy': {
            'object_type': 'network', 'object_id': cls.network_id,
            'action': 'access_as_shared',
            'target_tenant': cls.os_alt.credentials.project_id}})
        cls.addClassResourceCleanup(
            rbac.delete_resource,
            f'/rbac-policies/{made["rbac_policy"]["id"]}')

    def seen(self):
        """Return what the first tenant sees of its own."""
        vnf = self.tenant.tacker.show_vnf(self.vnf_id)
        return copy.deepcopy((
            vnf, self.clickos.read_handler(self.server_id, 'fw.config'),
            self.clickos.show_desired_state(self.server_id),
            self.clickos.call('GET', f'v1/states/{self.state_id}', 200)[1],
            self.clickos.show_secret(self.secret_id),
            [{key: port[key] for key in ('id', 'fixed_ips', 'mac_address',
                                         'device_id', 'admin_state_up')}
             for port in self.os_primary.ports_client.list_ports(
                 device_id=self.server_id)['ports']]))

    def status(self, client, method, url, body=None):
        """Send a request as it is; return status and text."""
        resp, text = client.raw_request(
            f'{client.base_url}/{url}', method,
            headers={**client.get_headers(), 'X-Auth-Token': client.token},
            body=None if body is None else json.dumps(body))
        return resp.status, text

    def refused(self, client, method, url, body=None, statuses=REFUSED):
        """Check that a request is refused; quote it if not."""
        status, text = self.status(client, method, url, body)
        if status not in statuses:
            self.wrong.append(f'{method} {url} {body}: {status} {text[:200]}')

    def setUp(self):
        super().setUp()
        self.wrong = []
        self.before = self.seen()

    def assertNothingGot(self):
        """Check that no request had an effect."""
        self.assertEqual([], self.wrong)
        self.assertEqual(self.before, self.seen())

    @decorators.idempotent_id('9a1f4a52-0f5c-4b0e-9a53-6d4c0f0e7a01')
    def test_every_route_of_clickos_api(self):
        client = self.os_alt.clickos.ClickOSClient()
        described = json.loads(self.status(client, 'GET',
                                           'openapi.json')[1])
        count = 0
        for path, operations in described['paths'].items():
            for method, operation in operations.items():
                if method == 'parameters' or '{id}' not in path:
                    continue
                for key in self.foreign.values():
                    count += 1
                    self.refused(
                        client, method.upper(),
                        path.lstrip('/').format_map({**VALUES, 'id': key}),
                        self.body(operation, key))
        self.assertGreater(count, 200)
        self.assertNothingGot()

    def body(self, operation, key):
        """Return a body with an id at each place; None if there is none."""
        content = operation.get('requestBody', {}).get('content')
        if not content:
            return None
        return self.sample(content['application/json']['schema'], key)

    def sample(self, schema, key, name=None):
        """Return a value of a schema; an unknown property is an error."""
        if schema.get('format') == 'uuid' and name != 'incarnation':
            return key
        if name == 'project_id':
            return self.os_primary.credentials.project_id
        if schema.get('type') == 'object' and 'properties' in schema:
            return {each: self.sample(found, key, each) for each, found in
                    schema['properties'].items()
                    if each in schema['required']}
        if name == 'hops':
            return [{'name': each, 'server': server, 'group': server}
                    for each, server in (('one', key),
                                         ('two', VALUES['incarnation']))]
        if name == 'to':
            return [key]
        return VALUES[name]

    @decorators.idempotent_id('9a1f4a52-0f5c-4b0e-9a53-6d4c0f0e7a02')
    def test_references_of_its_own_objects(self):
        client = self.os_alt.clickos.ClickOSClient()
        self.refused(client, 'POST', 'v1/states', {
            'config': 'Idle -> Discard;', 'writes': [
                ['a.x', f'clickos-secret:{self.secret_id}']]})
        for key in (self.server_id, self.state_id, self.vnf_id):
            self.refused(client, 'PUT', f'v1/states/{key}',
                         {'config': 'Idle -> Discard;'})
        self.assertNothingGot()

    @decorators.idempotent_id('9a1f4a52-0f5c-4b0e-9a53-6d4c0f0e7a03')
    def test_every_route_of_tacker(self):
        client = self.os_alt.tacker.TackerClient()
        names = [data_utils.rand_name('none'),
                 self.before[0]['vnfInstanceName']]
        for api, found in routes.APIS.items():
            for path, methods in found:
                if '{}' not in path:
                    continue
                for method, key in itertools.product(
                        methods.split(), (*self.foreign.values(), *names)):
                    body = BODIES.get(path.rpartition('/')[2], {})
                    self.refused(
                        client, method, PREFIXES[api] + path.replace(
                            '{}', key).replace('{...}', 'a'),
                        None if method in ('GET', 'DELETE') else body)
        self.assertNothingGot()

    @decorators.idempotent_id('9a1f4a52-0f5c-4b0e-9a53-6d4c0f0e7a04')
    def test_a_vim_and_a_package_of_another_project(self):
        client = self.os_alt.tacker.TackerClient()
        self.refused(client, 'POST', 'vnflcm/v1/vnf_instances', {
            'vnfdId': self.before[0]['vnfdId'], 'vnfInstanceName': 'x'},
            (400, 403, 404))
        self.refused(client, 'POST',
                     f'vnflcm/v1/vnf_instances/{self.vnf_id}/instantiate', {
                         'flavourId': 'simple', 'vimConnectionInfo': [{
                             'id': 'v', 'vimId': self.tenant.vim_id,
                             'vimType': 'openstack'}]})
        self.assertNothingGot()

    @decorators.idempotent_id('9a1f4a52-0f5c-4b0e-9a53-6d4c0f0e7a05')
    def test_addresses_on_a_shared_network(self):
        client = self.os_alt.ports_client
        port = self.ports[0]
        address = port['fixed_ips'][0]['ip_address']
        wanted = (
            {'fixed_ips': [{'ip_address': address}]},
            {'mac_address': port['mac_address']},
            {'allowed_address_pairs': [{'ip_address': address}]},
            {'allowed_address_pairs': [{'ip_address': '0.0.0.0/0'}]},
            {'port_security_enabled': False},
            {'device_owner': 'network:dhcp'},
            {'binding:host_id': 'elsewhere'})
        for each in wanted:
            self.refused(client, 'POST', 'v2.0/ports', {
                'port': {'network_id': self.network_id, **each}},
                (400, 403, 404, 409))
        for method, body in (('GET', None), ('DELETE', None),
                             ('PUT', {'port': {'admin_state_up': False}})):
            self.refused(client, method, f'v2.0/ports/{port["id"]}', body)
        self.assertNothingGot()

    @decorators.idempotent_id('9a1f4a52-0f5c-4b0e-9a53-6d4c0f0e7a06')
    def test_chains_of_foreign_parts(self):
        client, key = self.os_alt.sfc.SfcClient(), self.ports[0]['id']
        other = self.ports[-1]['id']
        for kind, values in (
                ('port_pair', {'ingress': key, 'egress': other}),
                ('port_pair_group', {'port_pairs': [key]}),
                ('flow_classifier', {'logical_source_port': key,
                                     'source_ip_prefix': '0.0.0.0/0'}),
                ('port_chain', {'port_pair_groups': [key]})):
            self.refused(client, 'POST', f'v2.0/sfc/{kind}s',
                         {kind: values}, (400, 403, 404, 409))
            for each in self.foreign.values():
                for method, body in (('GET', None), ('DELETE', None),
                                     ('PUT', {kind: {'name': 'x'}})):
                    self.refused(client, method,
                                 f'v2.0/sfc/{kind}s/{each}', body)
        self.assertNothingGot()
