# SPDX-License-Identifier: Apache-2.0
"""A chain is fused: another guest answers for its hops."""

import base64
import json
from unittest import mock
import uuid

from clickos_client import document

from clickos_api import errors
from tests.unit.clickos_api import base

HEAD = 'ip-rewriter 1\n'


class FusionTest(base.TestCase):
    """Two hops and the guest that has both, of one project."""

    def setUp(self):
        super().setUp()
        self.groups = [str(uuid.uuid4()) for _ in range(2)]
        self.add_chain()
        self.ids_id, self.fused_id = (str(uuid.uuid4()) for _ in range(2))
        for server_id in (self.ids_id, self.fused_id):
            self.cloud.add_server(server_id, self.project_id)
        self.agent.guests[self.server_id].update({
            'flows.state': HEAD + 'a\n', 'flows.merge': '',
            'flows.block_new_flows': '',
            'config': 'mine'})
        self.agent.guests[self.ids_id] = {'fw.config': 'x'}
        self.agent.guests[self.fused_id] = {
            'fw/fw.config': 'new', 'ids/fw.config': 'new', 'config': 'both',
            'fw/flows.state': HEAD + 'a\nb\n', 'fw/flows.merge': '',
            'fw/flows.block_new_flows': ''}

    def add_chain(self):
        """Make a chain of the groups."""
        self.chain_id = str(uuid.uuid4())
        self.cloud.add_chain(self.chain_id, self.project_id,
                             groups=self.groups)

    def path(self):
        """Return the path of the fusion."""
        return f'/v1/chains/{self.chain_id}/fusion'

    def fuse(self, token=None, **more):
        """Fuse the chain."""
        hops = [{'name': name, 'server': server, 'group': group}
                for name, server, group in zip(
                    ('fw', 'ids'), (self.server_id, self.ids_id),
                    self.groups)]
        return self.call('PUT', self.path(), token, json={
            'server': self.fused_id, 'hops': hops, **more})

    def unfuse(self, token=None):
        """Unfuse the chain."""
        return self.call('DELETE', self.path(), token)

    def values(self, *handlers):
        """Return values of the fused guest."""
        return [self.agent.guests[self.fused_id][name] for name in handlers]

    def writes(self, server_id):
        """Return the recorded writes of a server."""
        _, body = self.call('GET', f'/v1/servers/{server_id}/desired-state')
        return body['writes']

    def test_show(self):
        self.assertError(404, 'not-fused', self.chain_id,
                         self.call('GET', self.path()))
        shown = (200, {'fusion': {'server': self.fused_id, 'hops': [
            {'name': name, 'group': group}
            for name, group in zip(('fw', 'ids'), self.groups)]}})
        self.assertEqual(shown, self.fuse())
        self.assertEqual(shown, self.call('GET', self.path()))
        self.assertEqual((204, None), self.unfuse())
        self.assertError(404, 'not-fused', self.chain_id, self.unfuse())
        self.assertEqual(404, self.call('GET', self.path())[0])

    def test_the_fused_guest_gets_the_values_of_hops(self):
        self.cloud.servers[self.ids_id]['OS-EXT-SRV-ATTR:user_data'] = \
            base64.b64encode(json.dumps({
                'clickos': 1, 'config': 'Idle;', 'config_name': 'c',
                'writes': [['fw.config', 'first'], ['fw.x', '1']]}
            ).encode()).decode()
        self.put('allow all')
        self.assertEqual(200, self.fuse()[0])
        self.assertEqual(['allow all', 'first', '1'], self.values(
            'fw/fw.config', 'ids/fw.config', 'ids/fw.x'))
        self.assertEqual(
            [['fw/fw.config', 'allow all'], ['ids/fw.config', 'first'],
             ['ids/fw.x', '1']], self.writes(self.fused_id))

    def test_handlers_of_a_hop_are_those_in_the_fused_guest(self):
        self.fuse()
        _, body = self.call('GET', self.handlers())
        self.assertEqual(
            ['fw.config', 'flows.state', 'flows.merge',
             'flows.block_new_flows'],
            [each['name'] for each in body['handlers']])
        for name, value in (('fw.config', 'new'), ('config', 'mine')):
            _, body = self.call('GET', self.handlers(f'/{name}'))
            self.assertEqual({'name': name, 'value': value}, body)
        _, body = self.call(
            'POST', f'/v1/servers/{self.server_id}/reads',
            json={'names': ['config', 'fw.config', 'fw.none']})
        self.assertEqual(['mine', 'new', None], [
            each.get('value') for each in body['values']])
        self.unfuse()
        _, body = self.call('GET', self.handlers('/fw.config'))
        self.assertEqual('deny all', body['value'])

    def test_old_values_are_those_of_the_guest_that_answers(self):
        def read():
            return self.call('GET', self.handlers(
                '/fw.config?max_age=60'))[1]['value']
        self.assertEqual('deny all', read())
        self.fuse()
        self.assertEqual('new', read())
        self.agent.guests[self.fused_id]['fw/fw.config'] = 'newer'
        self.assertEqual('new', read())
        self.unfuse()
        self.assertEqual('deny all', read())

    def test_a_write_is_at_both_guests(self):
        self.fuse()
        self.assertEqual((200, {'revision': 1}), self.put('allow all'))
        self.assertEqual(['allow all', 'new'], self.values(
            'fw/fw.config', 'ids/fw.config'))
        self.assertEqual('allow all', self.agent.guests[self.server_id][
            'fw.config'])
        self.assertEqual([['fw.config', 'allow all']],
                         self.writes(self.server_id))
        self.assertEqual([['fw/fw.config', 'allow all']],
                         self.writes(self.fused_id))

    def test_a_refused_write_is_nowhere(self):
        self.fuse()
        self.assertError(400, 'handler-error', 'fw/fw.config',
                         self.put('bad'))
        for server_id in (self.server_id, self.fused_id):
            self.assertEqual([], self.writes(server_id))
        self.assertEqual(['new'], self.values('fw/fw.config'))
        self.assertEqual('deny all', self.agent.guests[self.server_id][
            'fw.config'])

    def test_what_would_not_outlive_it_is_refused(self):
        self.fuse()
        self.assertError(409, 'fused', 'unfuse', self.replace())
        for method, path, body in (
                ('PUT', 'handlers/fw/fw.config', {'value': 'x'}),
                ('PUT', 'configuration', {'config': 'Idle;'})):
            self.assertError(409, 'fused', self.chain_id, self.call(
                method, f'/v1/servers/{self.fused_id}/{path}', json=body))
        self.unfuse()
        self.assertEqual(200, self.replace()[0])

    def test_flows_go_both_ways(self):
        self.fuse()
        for giver, taker, count in ((self.server_id, self.fused_id, 1),
                                    (self.fused_id, self.server_id, 2)):
            self.assertEqual((200, {'flows': count}), self.call(
                'POST', f'/v1/servers/{giver}/flows', json={'to': [taker]}))
        self.assertEqual([HEAD + 'a\n', '60'], self.values(
            'fw/flows.merge', 'fw/flows.block_new_flows'))
        own = self.agent.guests[self.server_id]
        self.assertEqual((HEAD + 'a\nb\n', '0'), (
            own['flows.merge'], own['flows.block_new_flows']))

    def test_a_refused_fusion_leaves_nothing(self):
        self.put('allow all')
        self.agent.broken = {'error': {'code': 'dead-guest',
                                       'message': 'is paused'}}
        self.assertError(409, 'dead-guest', 'is paused', self.fuse())
        self.agent.broken = None
        self.assertEqual(404, self.call('GET', self.path())[0])
        self.assertEqual(200, self.fuse()[0])
        self.assertError(409, 'fused', 'has the hops', self.fuse())
        self.add_chain()
        other = str(uuid.uuid4())
        self.cloud.add_server(other, self.project_id)
        self.assertError(409, 'fused', 'already', self.fuse(server=other))

    def test_limits_at_the_same_time(self):
        limits = self.app.extensions['clickos']._service.limits
        refused = errors.ApiError('has shares', code='shares', status=409)
        for outcomes in ([refused], [None, refused]):
            with mock.patch.object(limits, 'require_none',
                                   side_effect=outcomes):
                self.assertError(409, 'shares', 'has shares', self.fuse())
        self.assertEqual(200, self.fuse()[0])

    def test_a_hop_of_a_fused_chain_fuses_no_other(self):
        """Its own guest handles no packets, so no hop is to be written there.
        """
        self.fuse()
        hop, self.fused_id = self.fused_id, self.server_id
        self.add_chain()
        others = [str(uuid.uuid4()) for _ in range(2)]
        for server_id in others:
            self.cloud.add_server(server_id, self.project_id)
            self.agent.guests[server_id] = {}
        hops = [{'name': name, 'server': server, 'group': group}
                for name, server, group in zip(('a', 'b'), others,
                                               self.groups)]
        self.assertError(409, 'fused', 'is a hop of the fused chain',
                         self.fuse(hops=hops))
        self.fused_id = hop
        self.assertError(409, 'fused', 'has the hops', self.fuse(hops=hops))

    def test_servers_of_one_state_are_one_guest(self):
        user_data = document.referring(self.make_state())
        for sharing in ((0, 1), (0, 2)):
            ids = [str(uuid.uuid4()) for _ in range(3)]
            for place, server_id in enumerate(ids):
                self.cloud.add_server(server_id, self.project_id)
                if place in sharing:
                    self.cloud.servers[server_id][
                        'OS-EXT-SRV-ATTR:user_data'] = user_data
            self.server_id, self.ids_id, self.fused_id = ids
            self.assertError(400, 'bad-request', 'has the same state',
                             self.fuse())

    def test_a_fused_server_that_is_gone(self):
        self.fuse()
        del self.cloud.servers[self.fused_id]
        _, body = self.call('GET', self.handlers('/fw.config'))
        self.assertEqual('deny all', body['value'])
        self.assertEqual(200, self.put('allow all')[0])
        self.assertEqual(204, self.unfuse()[0])

    def test_a_healed_hop_is_still_one(self):
        state_id = self.make_state()
        ids = [str(uuid.uuid4()) for _ in range(2)]
        user_data = base64.b64encode(json.dumps(
            {'clickos': 1, 'state': state_id}).encode()).decode()
        for server_id in ids:
            self.cloud.add_server(server_id, self.project_id)
            self.cloud.servers[server_id][
                'OS-EXT-SRV-ATTR:user_data'] = user_data
        self.ids_id = ids[0]
        self.fuse()
        del self.cloud.servers[ids[0]]
        _, body = self.call('GET',
                            f'/v1/servers/{ids[1]}/handlers/fw.config')
        self.assertEqual('new', body['value'])

    def test_servers_and_chains_of_others(self):
        project_id = uuid.uuid4().hex
        self.assertError(403, 'forbidden', 'chain:fuse', self.fuse(
            self.caller(self.project_id, 'reader')))
        self.assertEqual(404, self.fuse(
            self.caller(project_id, 'member', 'reader'))[0])
        self.fuse()
        stranger = self.caller(project_id, 'member', 'reader')
        self.assertEqual(404, self.call('GET', self.path(), stranger)[0])
        self.assertError(404, 'not-fused', self.chain_id,
                         self.unfuse(stranger))
        self.assertEqual(200, self.call('GET', self.path())[0])
        self.unfuse()
        self.cloud.servers[self.ids_id]['tenant_id'] = project_id
        self.assertEqual(404, self.fuse()[0])

    def test_a_foreign_state_is_no_hops(self):
        """user_data may name any state, and gets none of another project."""
        stranger = self.caller(uuid.uuid4().hex, 'member', 'reader')
        state_id = self.make_state(stranger, writes=[['fw.config', 'secret']])
        for server_id in (self.ids_id, self.fused_id):
            server = self.cloud.servers[server_id]
            server['OS-EXT-SRV-ATTR:user_data'] = document.referring(state_id)
            self.assertError(404, 'no-such-state', 'its project',
                             self.fuse())
            self.assertEqual(404, self.call('GET', self.path())[0])
            del server['OS-EXT-SRV-ATTR:user_data']
        self.assertEqual(200, self.fuse()[0])
        self.cloud.servers[self.fused_id][
            'OS-EXT-SRV-ATTR:user_data'] = document.referring(state_id)
        self.assertError(404, 'no-such-state', 'its project',
                         self.put('mine'))
        self.assertEqual(
            ([['fw.config', 'secret']], 1),
            tuple(self.call('GET', f'/v1/states/{state_id}', stranger)[1][key]
                  for key in ('writes', 'revision')))
        self.assertEqual(['new'], self.values('fw/fw.config'))

    def test_a_fused_server_of_another_project_answers_nothing(self):
        self.fuse()
        self.cloud.servers[self.fused_id]['tenant_id'] = 'other'
        _, body = self.call('GET', self.handlers('/fw.config'))
        self.assertEqual('deny all', body['value'])

    def test_groups_are_the_chains(self):
        self.groups[0] = str(uuid.uuid4())
        self.assertError(404, 'no-such-group', self.groups[0], self.fuse())

    def test_bad_requests(self):
        hop = {'name': 'fw', 'server': self.server_id,
               'group': self.groups[0]}
        other = {'name': 'ids', 'server': self.ids_id,
                 'group': self.groups[1]}
        for hops in (None, [], [hop], [hop, hop], [hop] * 21, [hop, 1],
                     [hop, {**other, 'name': 'a/b'}],
                     [hop, {**other, 'name': 7}],
                     [hop, {**other, 'group': None}],
                     [hop, {**other, 'more': 1}]):
            with self.subTest(hops=hops):
                self.assertError(400, 'bad-request', 'hops',
                                 self.fuse(hops=hops))
        for server in (None, 'x', self.server_id):
            self.assertError(400, 'bad-request', 'server',
                             self.fuse(server=server))
