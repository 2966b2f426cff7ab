# SPDX-License-Identifier: Apache-2.0
"""A guest transfers its flows to others."""

import os
from unittest import mock
import uuid

from oslo_context import context

from clickos_api.operations import policy
from tests.unit.clickos_api import base

HEAD = 'ip-rewriter 1\n'


class FlowsTest(base.TestCase):
    """Two guests of the project, with one element that has flows."""

    def setUp(self):
        super().setUp()
        self.target_id = str(uuid.uuid4())
        self.cloud.add_server(self.target_id, self.project_id)
        for server_id in (self.server_id, self.target_id):
            self.agent.guests[server_id] = {
                'flows.state': HEAD + 'a\nb\n', 'flows.block_new_flows': '',
                'flows.merge': ''}

    def transfer(self, *to, token=None):
        """Transfer the first guest's flows."""
        return self.call('POST', f'/v1/servers/{self.server_id}/flows',
                         token, json={'to': to or [self.target_id]})

    def test_transfer(self):
        self.assertEqual((200, {'flows': 2}), self.transfer())
        self.assertEqual(HEAD + 'a\nb\n', self.agent.guests[self.target_id][
            'flows.merge'])
        self.assertEqual('60', self.agent.guests[self.server_id][
            'flows.block_new_flows'])
        self.assertEqual('0', self.agent.guests[self.target_id][
            'flows.block_new_flows'])

    def test_agents_of_before_1_0(self):
        def older(ctxt, server_id, writes, *args, **more):
            if any(name.endswith('.block_new_flows') for name, _ in writes):
                return {'error': {
                    'code': 'bad-request',
                    'message': 'flows.block_new_flows: not a flow handler'}}
            return write(ctxt, server_id, writes, *args, **more)

        for guest in self.agent.guests.values():
            guest['flows.hold'] = ''
        write = self.agent.flows_write
        with mock.patch.object(self.agent, 'flows_write', older):
            self.assertEqual((200, {'flows': 2}), self.transfer())
        self.assertEqual('60', self.agent.guests[self.server_id][
            'flows.hold'])
        self.assertEqual('0', self.agent.guests[self.target_id]['flows.hold'])

    def test_no_desired_state(self):
        self.transfer()
        for server_id in (self.server_id, self.target_id):
            _, body = self.call('GET',
                                f'/v1/servers/{server_id}/desired-state')
            self.assertEqual((0, []), (body['revision'], body['writes']))

    def test_a_guest_without_flows(self):
        self.agent.guests[self.server_id] = {'fw.config': 'allow all'}
        self.assertEqual((200, {'flows': 0}), self.transfer())

    def test_another_configuration(self):
        self.agent.guests[self.target_id] = {'fw.config': 'allow all'}
        self.assertError(409, 'flows', self.target_id, self.transfer())

    def test_bad_requests(self):
        for to in ([], 'x', ['x'], [7], [self.target_id] * 17, None):
            with self.subTest(to=to):
                self.assertError(400, 'bad-request', '', self.call(
                    'POST', f'/v1/servers/{self.server_id}/flows',
                    json={'to': to}))
        self.assertError(400, 'bad-request', 'must be another',
                         self.transfer(self.server_id))

    def test_guests_of_others(self):
        other_id = str(uuid.uuid4())
        self.cloud.add_server(other_id, uuid.uuid4().hex)
        self.assertError(404, 'no-such-server', other_id,
                         self.transfer(other_id))
        self.assertError(404, 'no-such-server', '', self.transfer(
            str(uuid.uuid4())))
        self.assertError(403, 'forbidden', 'flows:transfer', self.transfer(
            token=self.caller(self.project_id, 'reader')))

    def test_the_former_name_of_the_rule(self):
        """A policy file of the release before 1.0 is obeyed as it is."""
        path = os.path.join(os.path.dirname(self.conf.config_file[0]),
                            'policy.yaml')
        with open(path, 'w') as file:
            file.write('"clickos:flows:give": "role:flow-mover"\n')
        self.conf.set_override('policy_file', path, 'oslo_policy')
        enforcer = policy.Policy(self.conf)
        for role, is_allowed in (('member', False), ('flow-mover', True)):
            caller = context.RequestContext(
                project_id=self.project_id, roles=[role])
            with self.subTest(role):
                self.assertEqual(is_allowed, enforcer.allows_any(
                    caller, policy.FLOWS_TRANSFER))

    def test_the_guests_errors(self):
        self.agent.broken = {'error': {'code': 'dead-guest',
                                       'message': 'is paused'}}
        self.assertError(409, 'dead-guest', 'is paused', self.transfer())
