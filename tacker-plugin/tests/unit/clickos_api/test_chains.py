# SPDX-License-Identifier: Apache-2.0
"""The counters of port chains."""

import types
from unittest import mock
import uuid

from clickos_api.operations import chains
from clickos_api import service

from tests.unit.clickos_api import base


class ChainsTest(base.TestCase):
    """One chain of the project, on host1."""

    def setUp(self):
        with mock.patch.object(service, 'Service', autospec=True,
                               side_effect=self._operations):
            super().setUp()
        self.chain_id = str(uuid.uuid4())
        self.cloud.add_chain(self.chain_id, self.project_id)

    def _operations(self, conf, make=service.Service):
        self.operations = make(conf)
        return self.operations

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

    def large(self):
        """Let the chain have all hops and pairs that a switch takes."""
        networking = self.cloud.networking
        chain = networking['port_chains', self.chain_id]
        chain['port_pair_groups'] = [f'g{n}' for n in range(20)]
        for group in chain['port_pair_groups']:
            pairs = [f'{group}-{n}' for n in range(16)]
            networking['port_pair_groups', group] = {
                'id': group, 'project_id': self.project_id,
                'port_pairs': pairs}
            for pair in pairs:
                networking['port_pairs', pair] = {
                    'id': pair, 'project_id': self.project_id,
                    'ingress': f'p-{pair}'}
                networking['ports', f'p-{pair}'] = {
                    'id': f'p-{pair}', 'project_id': self.project_id,
                    'binding:host_id': 'host1'}

    def test_a_large_chain_takes_few_requests(self):
        self.large()
        self.cloud.asked.clear()
        self.assertEqual(200, self.show()[0])
        first = len(self.cloud.asked)
        self.assertLess(first, 25)
        # Those of its hosts are known for a while.
        self.assertEqual(200, self.show()[0])
        self.assertLess(len(self.cloud.asked) - first, 5)

    def test_hosts_are_found_again_after_a_while_and_a_change(self):
        now_s = [0]
        self.operations.chains._hosts = chains._Kept(
            lambda: now_s[0])
        self.assertEqual(200, self.show()[0])
        port = self.cloud.networking['ports', 'port']
        port['binding:host_id'] = ''
        self.assertEqual(200, self.show()[0])
        now_s[0] = chains.KEPT_S
        self.assertError(409, 'not-active', 'no port', self.show())
        port['binding:host_id'] = 'host1'
        self.assertEqual(200, self.show()[0])
        port['binding:host_id'] = ''
        self.cloud.networking['port_chains', self.chain_id][
            'flow_classifiers'] = []
        self.assertError(409, 'not-active', 'no port', self.show())

    def test_a_bounded_number_of_chains_is_known(self):
        kept = chains._Kept()
        for number in range(1100):
            kept.of(number, list)
        self.assertEqual(1000, len(kept._found))

    def test_a_chain_takes_a_seat_of_those_that_wait(self):
        places = self.operations.bulkhead
        places._limit = 1
        other = types.SimpleNamespace(id='guest', project_id=self.project_id)
        with places.read(other):
            self.assertError(503, 'busy', f'port chain {self.chain_id}',
                             self.show())
        self.assertEqual(200, self.show()[0])

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
