# SPDX-License-Identifier: Apache-2.0
"""A foreign id in every argument of every RPC method of the agent.

The methods and their arguments are those of the endpoint. A guest
that is not on the host, or not a guest at all, has no answer.
"""

import copy

from clickos_client import rpc as client_rpc
import cosmos_client
import fixtures
import testtools

from clickos_agent import rpc
from tests.unit import cosmosd

OWN = '11111111-2222-4333-8444-555555555555'
CHAIN = '22222222-2222-4333-8444-555555555555'
FOREIGN = '99999999-2222-4333-8444-555555555555'
_COUNTERS = {'packets': 0, 'bytes': 0, 'dropped': 0}
#: Arguments that name an object, with the caller's own one.
IDS = {'server_id': OWN, 'chain_id': CHAIN}
#: A good value of each other argument.
VALUES = {'name': 'fw.config', 'names': ['fw.config'], 'element': 'fw',
          'part': 0, 'change_id': {'number': 7}, 'number': 7,
          'config': 'Idle;', 'config_name': 'a.click', 'timeout_ms': 1000,
          'has_secrets': False, 'param': '1', 'params': ['1']}
REFUSED = ('no-such-guest', 'not-active', 'bad-request')


def methods():
    """Return {name: its arguments} of the endpoint's methods."""
    relayed = {name: ['server_id', *keys]
               for name, (_, keys) in client_rpc.RELAYED.items()}
    return {**relayed, 'flows_read': ['server_id', 'element', 'part'],
            'chain_counters': ['chain_id']}


class ForeignIdsTest(testtools.TestCase):

    def setUp(self):
        super().setUp()
        self.useFixture(fixtures.FakeLogger())
        self.cosmosd = self.useFixture(cosmosd.FakeCosmosd())
        self.cosmosd.guests[OWN] = {'uuid': OWN}
        self.cosmosd.chains = [{
            'chain': CHAIN, 'counters': _COUNTERS, 'hops': [],
            'hop_counters': [], 'live_pairs': []}]
        self.endpoint = rpc.Endpoint(
            cosmos_client.CosmosClient(self.cosmosd.path, 60))

    @staticmethod
    def arguments(method, names):
        """Return good arguments; one without a value here is an error."""
        writes = ([['fw.merge', 'x']] if method == 'flows_write'
                  else [['fw.config', 'x']])
        values = {**VALUES, **IDS, 'writes': writes}
        return {name: values[name] for name in names}

    def test_every_method(self):
        found = methods()
        self.assertEqual(self.endpoint._methods.keys(), found.keys())
        for method, names in found.items():
            self.assertNotEqual(set(), IDS.keys() & set(names),
                                f'{method}: names no object')
            good = self.arguments(method, names)
            for name in IDS.keys() & set(names):
                for foreign in (FOREIGN, IDS['chain_id' if name == 'server_id'
                                             else 'server_id'], None, 7):
                    self.refused(method, {**good, name: foreign})
            answer = getattr(self.endpoint, method)({}, **good)
            self.assertNotIn('error', answer, method)

    def refused(self, method, arguments):
        """Check that a call has no answer and changes nothing."""
        before = copy.deepcopy((self.cosmosd.guests, self.cosmosd.chains))
        answer = getattr(self.endpoint, method)({}, **arguments)
        self.assertEqual({'error'}, set(answer), (method, arguments))
        self.assertIn(answer['error']['code'], REFUSED, (method, arguments))
        self.assertEqual(before, (self.cosmosd.guests, self.cosmosd.chains))

    def test_a_method_with_an_unknown_argument_fails(self):
        self.assertRaises(KeyError, self.arguments, 'novel', ['novel_id'])
