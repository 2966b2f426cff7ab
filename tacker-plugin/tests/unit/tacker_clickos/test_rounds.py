# SPDX-License-Identifier: Apache-2.0
"""VNFs that hang delay no VNF of another project."""

import threading
from unittest import mock

from tacker_clickos import rounds
from tests.unit.tacker_clickos import base

_SOON_S = 30


class RoundsTest(base.TestCase):

    def setUp(self):
        super().setUp()
        self.end = threading.Event()
        self.changed = threading.Condition()
        self.begun = []
        self.rounds = rounds.Rounds(self.work)

    def tearDown(self):
        self.end.set()
        self.wait(lambda: not self.rounds._threads)
        super().tearDown()

    def work(self, vnf_id):
        with self.changed:
            self.begun.append(vnf_id)
            self.changed.notify_all()
        if vnf_id.startswith('hung'):
            self.end.wait(_SOON_S)

    def begin(self, *vnf_ids):
        """Begin a round; the first four letters name the project."""
        self.rounds.begin({each: (each[:4], (each,)) for each in vnf_ids})

    def wait(self, done):
        with self.changed:
            while not done():
                self.changed.wait(0.01)

    def wait_for(self, *vnf_ids):
        self.wait(lambda: set(vnf_ids) <= set(self.begun))

    def test_hung_vnfs_have_the_share_of_their_project(self):
        hung = ['hung%d' % number for number in range(100)]
        self.begin(*hung, 'good1', 'good2', 'good3')
        self.wait_for('good1', 'good2', 'good3')
        self.assertEqual(['hung0', 'hung1'], sorted(
            each for each in self.begun if each.startswith('hung')))
        self.begin(*hung, 'good4')
        self.wait_for('good4')
        self.assertEqual(2, len(self.rounds._running))
        self.assertLessEqual(self.rounds._threads, rounds.PLACES)

    def test_projects_take_turns(self):
        """A VNF does not wait for all VNFs of a few other projects."""
        many = ['%s%d' % (project, number) for number in range(50)
                for project in ('pro1', 'pro2', 'pro3', 'pro4')]
        patcher = mock.patch.object(rounds, 'PLACES', 1)
        patcher.start()
        self.addCleanup(patcher.stop)
        self.begin(*many, 'zgood')
        self.wait(lambda: len(self.begun) == len(many) + 1)
        self.assertLess(self.begun.index('zgood'), 5)

    def test_the_next_round_begins_with_what_waited(self):
        hung = ['hung%d' % number for number in range(3)]
        self.begin(*hung)
        self.wait_for('hung0', 'hung1')
        self.end.set()
        self.wait_for('hung2')
        self.begin('hung0', 'hung3')
        self.wait_for('hung3')
        self.wait(lambda: self.begun.count('hung0') == 2)
        self.assertLess(self.begun.index('hung3'),
                        len(self.begun) - self.begun[::-1].index('hung0'))

    def test_only_vnfs_of_the_round_are_remembered(self):
        self.begin('good1', 'good2')
        self.wait_for('good1', 'good2')
        self.begin('good2')
        self.assertEqual(['good2'], list(self.rounds._begun_s))
