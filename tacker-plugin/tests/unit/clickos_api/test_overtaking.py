# SPDX-License-Identifier: Apache-2.0
"""No write that timed out overtakes a later one that was acknowledged."""

import random
from unittest import mock
import uuid

from clickos_agent import rpc as agent_rpc
from clickos_client import outcomes
from cosmos_client import CosmosError

from clickos_api import errors
from clickos_api.operations import background
from clickos_api.outside import rpc
from clickos_api.state import history
from clickos_api.state import keys
from tests.unit.clickos_api import base

ROUNDS = 60
HANDLERS = ('fw.config', 'nat.rules', 'fw.log')
#: When the agent gets to a write that clickos-api has given up.
MOMENTS = ('before', 'after', 'a round later', 'never', 'restart before',
           'restart after', 'settle before', 'settle after')


class Cosmosd:
    """The client of a cosmosd with one guest and its ledger.

    The ledger follows docs/interfaces.md, "Numbered changes"; cosmosd's own
    tests hold the daemon to it.
    """

    def __init__(self):
        self.failure = None
        self.start({}, 0)

    def start(self, values, number):
        """Start the guest again."""
        self.is_there, self.is_killed = True, False
        self.guest, self.refused = dict(values), []
        self.newest, self.applied = number, []
        self.incarnation = str(uuid.uuid4())

    def call(self, verb, /, **args):
        """Stand in for CosmosClient.call."""
        return getattr(self, verb.replace('-', '_'))(**args)

    def handler_write(self, uuid, writes, timeout_ms, change_id):
        """Write, or raise the failure that a test has set."""
        if (change_id['number'] <= self.newest
                or change_id.get('incarnation') not in (None,
                                                        self.incarnation)):
            raise CosmosError('stale', 'it came too late')
        if self.is_killed:   # after it took the request, before its ledger
            raise CosmosError('unavailable', 'cosmosd closed the connection')
        self.newest = change_id['number']
        if self.failure:
            raise self.failure
        self.guest.update(writes)
        self.applied.append(self.newest)
        return {'applied': self.applied[-16:],
                'incarnation': self.incarnation}

    def change_fence(self, uuid, number):
        """Fence the numbers up to this one."""
        if not self.is_there:
            raise CosmosError('no-such-guest', 'no guest')
        self.newest = max(self.newest, number)
        return {'incarnation': self.incarnation, 'newest': self.newest,
                'applied': self.applied[-16:], 'refused': self.refused,
                'pending': []}


class SlowAgent:
    """The real agent's endpoint behind a queue that can be held up."""

    def __init__(self):
        self.cosmosd = Cosmosd()
        self._endpoint = agent_rpc.Endpoint(self.cosmosd)
        self._held = []
        self.is_slow = False

    def call(self, agent, host, method, **arguments):
        """Stand in for rpc.Agent._call."""
        if self.is_slow:
            self._held.append((method, arguments))
            raise errors.AgentTimeout('nothing heard')
        return rpc._checked(host, method, getattr(
            self._endpoint, method)({}, **arguments))

    def catch_up(self):
        """Do what was held up."""
        held, self._held = self._held, []
        for method, arguments in held:
            getattr(self._endpoint, method)({}, **arguments)

    def lose(self):
        """Forget what was held up."""
        self._held = []


class OvertakingTest(base.TestCase):
    """The guest and desired state stay equal."""

    def setUp(self):
        super().setUp()
        self.key = keys.of_server(self.server_id)
        self.slow = SlowAgent()
        self.background = self.app.extensions['clickos']
        self.store = self.background._service.store
        self.use(base.fixtures.MockPatchObject(
            rpc.Agent, '_call', autospec=True, side_effect=self.network))
        self.use(base.fixtures.MockPatchObject(background, '_MARGIN_S', -9))

    def network(self, agent, host, method, **arguments):
        return self.slow.call(agent, host, method, **arguments)

    def assertSettled(self, why):
        """Check that desired state is what the guest enforces."""
        self.assertEqual(self.slow.cosmosd.guest,
                         dict(self.store.read(self.key).writes), why)

    def put_slowly(self, value, handler='fw.config'):
        self.slow.is_slow = True
        change = self.assertPending(self.put(value, handler))
        self.slow.is_slow = False
        return change

    def restart(self):
        """Start the guest as the Nova driver does."""
        seen = self.store.read(self.key)
        self.slow.cosmosd.start(dict(seen.writes), seen.number)
        self.assertTrue(self.store.start(
            self.key, seen, self.slow.cosmosd.incarnation))

    def happen(self, moment, event):
        """Let happen what a moment says before or after the good write."""
        if moment == event:
            self.slow.catch_up()
        elif moment == f'restart {event}':
            self.restart()
            self.slow.catch_up()
        elif moment == f'settle {event}':
            self.background.settle()
            self.slow.catch_up()
        elif moment == 'never':
            self.slow.lose()

    def test_writes_that_time_out(self):
        chance = random.Random(34)
        for number in range(ROUNDS):
            moment = chance.choice(MOMENTS)
            late = self.put_slowly(f'late {number}', chance.choice(HANDLERS))
            self.happen(moment, 'before')
            self.assertEqual(200, self.put(f'{number}',
                                           chance.choice(HANDLERS))[0])
            self.assertSettled((number, moment))
            self.happen(moment, 'after')
            self.assertSettled((number, moment))
            status = self.call('GET', late)[1].get('change', {}).get('status')
            self.assertNotEqual('pending', status, (number, moment))

    def test_a_verdict_that_comes_late_is_recorded(self):
        change = self.put_slowly('late')
        self.slow.catch_up()
        self.assertEqual('pending', self.status(change))
        self.background.settle()
        self.assertEqual('applied', self.status(change))
        self.assertSettled('after the agent was asked')

    def status(self, change):
        """Return the status of a change at its address."""
        status, body = self.call('GET', change)
        self.assertEqual(200, status)
        return body['change']['status']

    def assertEnd(self, change, outcome, code):
        """Check that a change ended with the one word and text of a cause.
        """
        found = self.call('GET', change)[1]['change']
        self.assertEqual((outcome, {'code': code,
                                    'message': outcomes.message(code)}),
                         (found['status'], found['error']))
        self.assertNotIn('revision', found)

    def test_a_write_lost_with_the_message_queue(self):
        change = self.put_slowly('lost')
        self.slow.lose()
        self.background.settle()
        self.assertEnd(change, 'lost', 'not-received')
        self.slow.catch_up()
        self.assertSettled('the agent came to it later')

    def test_a_write_lost_with_cosmosd(self):
        """It is killed between the request and its ledger."""
        self.slow.cosmosd.is_killed = True
        change = self.assertPending(self.put('lost'))
        self.slow.cosmosd.is_killed = False
        self.background.settle()
        self.assertEnd(change, 'lost', 'not-received')
        self.assertSettled('cosmosd is back')

    def test_a_write_that_a_later_one_overtook(self):
        change = self.put_slowly('late')
        self.assertEqual(200, self.put('new')[0])
        self.assertEnd(change, 'lost', 'overtaken')
        self.slow.catch_up()
        self.assertSettled('the agent came to it later')

    def test_a_write_before_a_start(self):
        change = self.put_slowly('late')
        self.restart()
        self.assertEnd(change, 'lost', 'restarted')

    def test_a_write_before_a_start_that_nobody_reported(self):
        self.assertEqual(200, self.put('1')[0])
        change = self.put_slowly('late')
        self.slow.cosmosd.start({}, 0)
        self.background.settle()
        self.assertEnd(change, 'lost', 'restarted')

    def test_a_write_to_a_server_that_is_gone(self):
        self.put_slowly('late')
        del self.cloud.servers[self.server_id]
        number = self.store.read(self.key).number
        self.background.settle()
        (found,) = history.changes(self.store, self.key)
        self.assertEqual(
            ('lost', number, outcomes.message('server-gone')),
            (found['status'], found['number'], found['error']['message']))

    def test_a_write_to_a_host_without_the_guest(self):
        """The guest may be on another host, and have it."""
        change = self.put_slowly('late')
        self.slow.cosmosd.is_there = False
        self.background.settle()
        self.assertEqual('pending', self.status(change))
        with mock.patch.object(background, '_LOST_S', -1):
            self.background.settle()
        self.assertEnd(change, 'unknown', 'no-guest')

    def test_what_the_ledger_did_not_hear_is_no_refusal(self):
        for code, outcome, cause in (
                ('timeout', 'lost', 'not-received'),
                ('dead-guest', 'lost', 'guest-died'),
                ('stale', 'lost', 'overtaken'),
                ('internal', 'unknown', 'bad-answer')):
            change = self.put_slowly(code)
            self.slow.lose()
            self.slow.cosmosd.refused = [{
                'number': int(change.rpartition('/')[2]), 'code': code,
                'message': 'words of cosmosd'}]
            self.background.settle()
            self.assertEnd(change, outcome, cause)

    def test_a_refusal_that_comes_late_is_told(self):
        change = self.put_slowly('late')
        number = int(change.rpartition('/')[2])
        with mock.patch.object(
                Cosmosd, 'change_fence', autospec=True, return_value={
                    'incarnation': 'x', 'newest': 0, 'applied': [],
                    'pending': [], 'refused': [{
                        'number': number, 'code': 'handler-error',
                        'message': 'fw.config: bad rule'}]}):
            self.background.settle()
        found = self.call('GET', change)[1]['change']
        self.assertEqual(('refused', 'fw.config: bad rule'),
                         (found['status'], found['error']['message']))

    def test_a_guest_that_did_not_answer_yet_keeps_it_pending(self):
        change = self.put_slowly('late')
        number = int(change.rpartition('/')[2])
        with mock.patch.object(
                Cosmosd, 'change_fence', autospec=True, return_value={
                    'incarnation': 'x', 'newest': number, 'applied': [],
                    'pending': [number], 'refused': []}):
            self.background.settle()
        self.assertEqual('pending', self.status(change))

    def test_a_start_waits_for_the_newest_state(self):
        self.assertEqual(200, self.put('1')[0])
        seen = self.store.read(self.key)
        self.assertEqual(200, self.put('2')[0])
        self.assertFalse(self.store.start(self.key, seen, 'x'))
        seen = self.store.read(self.key)
        self.put_slowly('3')
        self.assertFalse(self.store.start(self.key, seen, 'x'))

    def test_a_late_write_after_desired_state_was_deleted(self):
        self.put_slowly('late')
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
        with mock.patch('time.time_ns', autospec=True, return_value=1000):
            self.call('DELETE', self.state_path())
            self.assertError(503, 'stale', 'too late', self.put('old'))

    def test_a_service_reports_a_start(self):
        self.assertEqual(200, self.put('1')[0])
        seen = self.store.read(self.key)
        body = {'number': seen.number, 'revision': 1,
                'incarnation': self.slow.cosmosd.incarnation,
                'server_id': self.server_id, 'project_id': self.project_id}
        path = f'/v1/states/{self.server_id}/starts'
        service = self.caller('service', 'service')
        self.assertEqual((200, {}), self.call('POST', path, service,
                                              json=body))
        self.assertError(409, 'outdated', 'newer', self.call(
            'POST', path, service, json={**body, 'revision': 0}))
        self.assertError(403, 'forbidden', 'desired_state:start',
                         self.call('POST', path, json=body))
        for key, bad in (('number', -1), ('incarnation', 'x'),
                         ('server_id', 7), ('project_id', None)):
            self.assertError(400, 'bad-request', key, self.call(
                'POST', path, service, json={**body, key: bad}))
