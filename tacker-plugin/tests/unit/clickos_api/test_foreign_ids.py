# SPDX-License-Identifier: Apache-2.0
"""A foreign id at every place of every route is refused and changes nothing.

The service is the real one, with its database; tests.unit.clickos_api.foreign
reads the places from its tables.
"""

import copy
import functools
import pathlib
import uuid

from clickos_client import document
import sqlalchemy as sa

from clickos_api.db import models
from clickos_api.http import operation as operations

from tests.unit.clickos_api import base
from tests.unit.clickos_api import foreign

USER_DATA = 'OS-EXT-SRV-ATTR:user_data'
LIMITS = [{'name': 'rate', 'kind': 'rate', 'handler': 'a.share', 'total': 9}]
#: What belongs to the other project; no answer has it.
MARK = 'of-another-project'
REFUSED = (403, 404)
#: Tests among which the routes are divided.
PARTS = 10
#: A VNF's configuration is its descriptor's, so the caller gets a conflict.
EXPECTED = {('put', '/v1/vnfs/{id}/configuration'): (409,)}


class ForeignIdsTest(base.TestCase):
    """A caller that owns one of each, and another project that does."""

    def setUp(self):
        super().setUp()
        self.service = self.caller('svc', 'service', 'member', 'reader')
        self.stranger_id = uuid.uuid4().hex
        self.stranger = self.caller(self.stranger_id, 'member', 'reader')
        self.foreign = self.things(self.stranger_id, self.stranger, MARK)
        self.foreign['project'] = self.stranger_id
        self.fuse(self.foreign, self.stranger)
        self.share(self.foreign, self.stranger)
        folder = pathlib.Path(self.conf.clickos_api.catalog_path)
        folder.mkdir()
        (folder / 'firewall.csar').write_bytes(b'')

    def server(self, project_id, value, **metadata):
        """Make a server with a guest; return its id."""
        server_id = str(uuid.uuid4())
        self.cloud.add_server(server_id, project_id)
        self.cloud.servers[server_id]['metadata'] = metadata
        self.agent.guests[server_id] = {
            'fw.config': value, 'a.state': '', 'a.merge': '',
            'a.block_new_flows': '', 'a.share': '0 0',
            **{f'{hop}/fw.config': value for hop in ('one', 'two')}}
        return server_id

    def things(self, project_id, token, value):
        """Make one of each kind of object; return {kind: id}."""
        found = {kind: self.server(project_id, value) for kind in (
            'server', 'taker', 'hop', 'fused', 'of_vnf')}
        found.update({kind: str(uuid.uuid4()) for kind in (
            'vnf', 'vnfc', 'chain', 'group', 'group2', 'port')})
        self.cloud.add_port(found['port'], project_id, f'net-{project_id}',
                            name=value)
        self.cloud.add_vnf(found['vnf'], project_id,
                           [(found['of_vnf'], 'VDU1', found['vnfc'])])
        self.cloud.add_chain(found['chain'], project_id,
                             groups=[found['group'], found['group2']])
        found['state'] = self.make_state(token, config=f'// {value}\nIdle;')
        found['secret'] = self.call(
            'POST', '/v1/secrets', token,
            json={'name': 'it', 'value': value})[1]['secret']['id']
        found['limits'] = str(uuid.uuid4())
        return found

    def share(self, found, token):
        """Let a server of things share limits."""
        self.assertEqual(200, self.call(
            'PUT', f'/v1/limits/{found["limits"]}', token, json={
                'limits': LIMITS, 'servers': [found['taker']]})[0])

    def fuse(self, found, token):
        """Fuse the chain of things, and change its hop."""
        status, answer = self.call(
            'PUT', f'/v1/chains/{found["chain"]}/fusion', token,
            json={'server': found['fused'], 'hops': self.hops(found)})
        self.assertEqual(200, status, answer)

    @staticmethod
    def hops(found):
        """Return the hops of a fusion as a request has them."""
        return [{'name': name, 'server': found[server],
                 'group': found[group]}
                for name, server, group in (('one', 'server', 'group'),
                                            ('two', 'hop', 'group2'))]

    def examples(self, own):
        """Return a value for every property and parameter."""
        return {
            'package': 'firewall', 'name': 'fw.config',
            'names': ['fw.config'], 'max_age': 1,
            'value': 'x', 'config': 'Idle;',
            'writes': [['fw.config', 'x']], 'to': [own['taker']],
            'server': own['fused'], 'hops': self.hops(own), 'revision': 0,
            'number': 0, 'incarnation': str(uuid.uuid4()),
            'server_id': own['server'], 'project_id': self.project_id,
            'vnfc': own['vnfc'], 'roles': ['dhcp-server'],
            'servers': [own['taker']], 'limits': LIMITS}

    def own(self, operation):
        """Make the caller's things, as an operation needs them."""
        own = self.things(self.project_id, self.token, 'mine')
        examples = self.examples(own)
        if operation.path.endswith('/starts'):
            self.cloud.servers[own['server']][USER_DATA] = \
                document.referring(own['state'])
            examples['revision'] = 1
        for kind, target in (('servers', 'server'), ('vnfs', 'vnf')):
            if operation.kind == kind and '{number}' in operation.path:
                self.call('PUT', f'/v1/{kind}/{own[target]}/handlers/'
                          'fw.config', json={'value': 'x'})
                _, answer = self.call(
                    'GET', f'/v1/{kind}/{own[target]}/changes')
                examples['number'] = answer['changes'][0]['number']
        if operation.path.endswith('/fusion') and operation.method != 'put':
            self.fuse(own, self.token)
        if operation.kind == 'limits':
            self.share(own, self.token)
        if operation.path.endswith('/desired-state'):
            for kind, target in (('servers', 'server'), ('vnfs', 'vnf')):
                self.call('PUT', f'/v1/{kind}/{own[target]}/handlers/'
                          'fw.config', json={'value': 'x'})
            examples['revision'] = 1
        return own, examples

    def send(self, request, token=None):
        """Send a request; return status and text."""
        answer = self.client.open(
            request.path, method=request.operation.method.upper(),
            query_string=request.query, json=request.body,
            headers={'X-Auth-Token': token or self.token})
        return answer.status_code, answer.get_data(as_text=True)

    def everything(self):
        """Return all rows of the database and all guests."""
        store = self.app.extensions['clickos']._service.store
        with store.reader() as session:
            rows = {table.name: sorted(map(repr, session.execute(
                sa.select(table)))) for table in
                models.Base.metadata.sorted_tables}
        return rows, copy.deepcopy(self.agent.guests), copy.deepcopy(
            self.cloud.networking)

    def refer(self, place, own, value):
        """Let an own object refer to a foreign one."""
        if place.keys == ('user_data',):
            self.cloud.servers[own['server']][USER_DATA] = \
                document.referring(value)
        else:
            self.cloud.add_vnf(own['vnf'], self.project_id,
                               [(value, 'VDU1', own['vnfc'])])

    def walk_part(self, part):
        """Walk the routes of a part; a test each, since a test has a limit."""
        found = list(foreign.operations())
        self.assertGreater(len(found), 30)
        for operation in found[part::PARTS]:
            with self.subTest(f'{operation.method} {operation.path}'):
                self.walk(operation)

    for _part in range(PARTS):
        locals()[f'test_every_id_of_routes_{_part}'] = (
            functools.partialmethod(walk_part, _part))

    def walk(self, operation):
        """Try every foreign id, then the caller's own ones."""
        own, examples = self.own(operation)
        for place, value in foreign.cases(operation, self.foreign, own):
            self.refused(operation, own, examples, place, value)
        request = foreign.Request(operation, own, examples)
        status, text = self.send(request)
        if status in REFUSED:
            status, text = self.send(request, self.service)
        self.assertIn(status, EXPECTED.get(
            (operation.method, operation.path), (200, 201, 202, 204)), text)

    def refused(self, operation, own, examples, place, value):
        """Check that a foreign id is refused, by any caller."""
        request = foreign.Request(operation, own, examples)
        servers, vnfs = (copy.deepcopy(found) for found in (
            self.cloud.servers, self.cloud.vnfs))
        if not request.put(place, value):
            self.refer(place, own, value)
        before = self.everything()
        status, text = self.send(request)
        self.assertIn(status, REFUSED, (place, value, text))
        self.assertNotIn(MARK, text)
        self.assertEqual(before, self.everything(), (place, value))
        self.cloud.servers, self.cloud.vnfs = servers, vnfs

    def test_each_route_is_an_operation(self):
        served = {rule.endpoint for rule in self.app.url_map.iter_rules()
                  if rule.rule.startswith('/v1/')}
        self.assertEqual({f'v1.{each.function.__name__}'
                          for each in operations.OPERATIONS}, served)

    def test_an_id_of_an_unknown_kind_fails(self):
        operation = foreign.Operation('get', '/v1/novel/{id}', {
            'all_parameters': []})
        with self.assertRaises(KeyError):
            list(operation.places())
