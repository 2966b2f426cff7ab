# SPDX-License-Identifier: Apache-2.0
"""The counters of port chains."""

import uuid

from clickos_api import chains

from tests.unit.clickos_api import base


class ChainsTest(base.TestCase):
    """One chain of the project, on host1."""

    def setUp(self):
        super().setUp()
        self.chain_id = str(uuid.uuid4())
        self.cloud.add_chain(self.chain_id, self.project_id)

    def show(self, token=None, chain_id=None):
        """Ask for the chain."""
        return self.call('GET', f'/v1/chains/{chain_id or self.chain_id}',
                         token)

    def test_counters(self):
        status, body = self.show()
        self.assertEqual(200, status)
        self.assertEqual(3, body['chain']['packets'])
        self.assertEqual([(3, 2, 1)], [
            (hop['packets'], hop['pairs'], hop['live_pairs'])
            for hop in body['chain']['hops']])

    def test_hosts_count_their_own_parts(self):
        def answer(*packets):
            counters = [{'packets': n, 'bytes': 60 * n, 'dropped': 1,
                         'looped': 4}
                        for n in packets]
            hops = [{**each, 'pairs': 1, 'live_pairs': 1}
                    for each in counters[1:]]
            return {**counters[0], 'hops': hops}
        self.assertEqual(
            {'packets': 5, 'bytes': 300, 'dropped': 2, 'looped': 8, 'hops': [
                {'packets': 4, 'bytes': 240, 'dropped': 2, 'looped': 8,
                 'pairs': 1, 'live_pairs': 1},
                {'packets': 5, 'bytes': 300, 'dropped': 2, 'looped': 8,
                 'pairs': 1, 'live_pairs': 1}]},
            chains._total([answer(5, 4, 0), answer(0, 0, 5)]))

    def test_every_role(self):
        elsewhere = uuid.uuid4().hex
        for project, roles, status in (
                (self.project_id, (), 403),
                (self.project_id, ('reader',), 200),
                (self.project_id, ('member', 'reader'), 200),
                (elsewhere, ('member', 'reader'), 404),
                (elsewhere, ('service',), 404)):
            with self.subTest(project=project, roles=roles):
                token = self.caller(project, *roles)
                self.assertEqual(status, self.show(token)[0])

    def test_a_chain_that_neutron_shows_to_another_project(self):
        token = self.caller(uuid.uuid4().hex, 'admin', 'member', 'reader')
        self.cloud.projects[token] = self.project_id
        self.assertError(403, 'forbidden', 'policy', self.show(token))

    def test_no_such_chain(self):
        self.assertError(404, 'no-such-chain', 'port chain',
                         self.show(chain_id=str(uuid.uuid4())))
        self.assertError(400, 'bad-request', 'port chain',
                         self.show(chain_id='x'))

    def test_a_chain_on_no_host(self):
        self.cloud.add_chain(self.chain_id, self.project_id, host='')
        self.assertError(409, 'not-active', 'no port', self.show())

    def test_answers_of_the_agent(self):
        self.agent.broken = {'error': {'code': 'not-active',
                                       'message': 'not at the switch'}}
        self.assertError(409, 'not-active', 'not at the switch', self.show())
        for answer in ({'hops': []}, {
                'packets': 1, 'bytes': 1, 'dropped': 0, 'hops': ['x']}):
            self.agent.broken = answer
            self.assertError(502, 'agent-failed', 'cannot be understood',
                             self.show())
