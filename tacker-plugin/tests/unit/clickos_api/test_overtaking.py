# SPDX-License-Identifier: Apache-2.0
"""No write that timed out overtakes a later one that was acknowledged."""

import random
from unittest import mock

from clickos_agent import rpc as agent_rpc
from cosmos_client import CosmosError

from clickos_api import desired_state
from clickos_api import errors
from clickos_api import rpc
from tests.unit.clickos_api import base

ROUNDS = 200
HANDLERS = ('fw.config', 'nat.rules', 'fw.log')
#: When the agent gets to a write that clickos-api has given up.
MOMENTS = ('before', 'after', 'a round later', 'never')


class Cosmosd:
    """The client of a cosmosd with one guest."""

    def __init__(self):
        self.guest = {}
        self.failure = None

    def handler_write(self, uuid, writes, timeout_ms):
        """Write, or raise the failure that a test has set."""
        if self.failure:
            raise self.failure
        self.guest.update(writes)


class SlowAgent:
    """The real agent's endpoint behind a queue that can be held up."""

    def __init__(self):
        self.cosmosd = Cosmosd()
        self._endpoint = agent_rpc.Endpoint(self.cosmosd, 1)
        self._held = []
        self.is_slow = False

    def call(self, agent, host, method, **arguments):
        """Stand in for rpc.Agent._call."""
        if self.is_slow:
            self._held.append(arguments)
            raise errors.Silent('nothing heard')
        return rpc._checked(host, getattr(self._endpoint, method)(
            {}, **arguments))

    def catch_up(self):
        """Do what was held up."""
        held, self._held = self._held, []
        for arguments in held:
            self._endpoint.handler_write({}, **arguments)

    def lose(self):
        """Forget what was held up."""
        self._held = []


class OvertakingTest(base.TestCase):
    """The guest and desired state stay equal."""

    def setUp(self):
        super().setUp()
        self.slow = SlowAgent()
        self.store = desired_state.Store(self.conf)
        self.use(base.fixtures.MockPatchObject(
            rpc.Agent, '_call', autospec=True, side_effect=self.network))

    def network(self, agent, host, method, **arguments):
        return self.slow.call(agent, host, method, **arguments)

    def assertSettled(self, why):
        """Check that desired state is what the guest enforces."""
        self.assertEqual(self.slow.cosmosd.guest,
                         dict(self.store.read(self.server_id).writes), why)

    def put_slowly(self, value, handler):
        self.slow.is_slow = True
        self.assertEqual(504, self.put(value, handler)[0])
        self.slow.is_slow = False

    def test_200_writes_that_time_out(self):
        chance = random.Random(34)
        for number in range(ROUNDS):
            moment = chance.choice(MOMENTS)
            self.put_slowly(f'late {number}', chance.choice(HANDLERS))
            if moment == 'before':
                self.slow.catch_up()
            if moment == 'never':
                self.slow.lose()
            self.assertEqual(200, self.put(f'{number}',
                                           chance.choice(HANDLERS))[0])
            self.assertSettled((number, moment))
            if moment == 'after':
                self.slow.catch_up()
                self.assertSettled((number, moment))

    def test_a_late_write_after_desired_state_was_deleted(self):
        self.put_slowly('late', 'fw.config')
        self.assertEqual(204, self.call('DELETE', self.state_path())[0])
        self.assertEqual(200, self.put('new')[0])
        self.slow.catch_up()
        self.assertSettled('the agent applied the late write')

    def test_a_refused_write_leaves_nothing_pending(self):
        self.slow.cosmosd.failure = CosmosError('handler-error', 'no')
        self.assertEqual(400, self.put('bad')[0])
        self.slow.cosmosd.failure = None
        self.assertEqual((200, {'revision': 1}), self.put('good'))
        self.assertSettled('after a refusal')

    def test_an_overtaken_write_is_busy(self):
        self.assertEqual(200, self.put('new')[0])
        with mock.patch('time.time_ns', autospec=True, return_value=0):
            self.call('DELETE', self.state_path())
            self.assertError(503, 'busy', 'a later write came first',
                             self.put('old'))
