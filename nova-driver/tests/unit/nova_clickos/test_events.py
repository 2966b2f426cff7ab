# SPDX-License-Identifier: Apache-2.0
"""The event thread against a cosmosd that dies and comes back."""

import queue
from unittest import mock

import cosmos_client
import fixtures

from nova_clickos import events
from tests.unit import cosmosd
from tests.unit.nova_clickos import base

WAIT_S = 60


class EventFollowerTest(base.TestCase):

    def setUp(self):
        super().setUp()
        for name, value in (('FIRST_DELAY_S', 0.01), ('MAX_DELAY_S', 0.02)):
            self.useFixture(fixtures.MockPatchObject(events, name, value))
        self.cosmosd = self.useFixture(cosmosd.FakeCosmosd())
        self.calls = queue.Queue()
        self.follower = self.follow(
            on_connected=lambda: self.calls.put('connected'))

    def follow(self, on_connected):
        return events.EventFollower(
            cosmos_client.CosmosClient(self.cosmosd.path, 60),
            on_died=lambda *args: self.calls.put(args),
            on_connected=on_connected,
            on_lost=lambda reason: self.calls.put('lost'),
            on_faults=self.calls.put,
            on_guest=lambda *args: self.calls.put(args))

    def start(self):
        self.addCleanup(self.follower.stop)
        self.follower.start()

    def next_call(self):
        return self.calls.get(timeout=WAIT_S)

    def test_died(self):
        self.start()
        self.assertEqual('connected', self.next_call())
        self.cosmosd.send('state', uuid='a', rid=0, state='Running')
        self.cosmosd.send('died', uuid='b', domid=2, reason='killed')
        self.assertEqual(('b', 'killed'), self.next_call())

    def test_states_of_guests(self):
        self.start()
        self.assertEqual('connected', self.next_call())
        self.cosmosd.send('guest', uuid='b', domid=2, state='paused',
                          reason='')
        self.assertEqual(('b', 'paused'), self.next_call())

    def test_faults_of_the_host(self):
        self.start()
        self.assertEqual('connected', self.next_call())
        faults = [{'part': 'valed', 'reason': 'gone'}]
        self.cosmosd.send('host', faults=faults)
        self.assertEqual(faults, self.next_call())

    def test_comes_back(self):
        self.start()
        self.assertEqual('connected', self.next_call())
        self.cosmosd.stop()
        self.assertEqual('lost', self.next_call())
        self.cosmosd.start()
        self.assertEqual('connected', self.next_call())
        self.cosmosd.send('died', uuid='b', domid=2, reason='killed')
        self.assertEqual(('b', 'killed'), self.next_call())

    def test_lost_is_told_once(self):
        self.cosmosd.stop()
        self.start()
        self.assertEqual('lost', self.next_call())
        self.assertRaises(queue.Empty, self.calls.get, timeout=0.2)

    def test_delay_doubles_up_to_the_limit(self):
        self.cosmosd.stop()
        delays = []

        def wait(delay_s):
            delays.append(delay_s)
            if len(delays) == 4:
                self.follower._stop.set()

        with mock.patch.object(self.follower._stop, 'wait', wait):
            self.follower._run()
        self.assertEqual([0.01, 0.02, 0.02, 0.02], delays)

    def test_a_failing_callback_does_not_end_the_thread(self):
        answers = iter((RuntimeError('database is away'), None))

        def on_connected():
            self.calls.put('connected')
            error = next(answers, None)
            if error:
                raise error

        self.follower = self.follow(on_connected)
        self.start()
        self.assertEqual('connected', self.next_call())
        self.cosmosd.send('died', uuid='b', domid=2, reason='killed')
        self.assertEqual(('b', 'killed'), self.next_call())

    def test_stop_while_waiting_for_an_event(self):
        self.start()
        self.assertEqual('connected', self.next_call())
        self.follower.stop()
        self.assertFalse(self.follower._thread.is_alive())
        self.follower.stop()

    def test_stop_before_start(self):
        self.follower.stop()
