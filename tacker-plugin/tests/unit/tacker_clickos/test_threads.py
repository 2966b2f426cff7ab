# SPDX-License-Identifier: Apache-2.0
"""The conductor's threads are shared among projects; the excess waits."""

import collections
import datetime
import json
import threading
import time
import types

import eventlet
from oslo_utils import timeutils
from tacker.common import coordination
from tacker.db.db_sqlalchemy import models
from tacker import objects
from tooz import coordination as tooz_coordination

from tacker_clickos import early
from tacker_clickos import exception
from tacker_clickos import management
from tacker_clickos import threads
from tests.unit.tacker_clickos import base
from tests.unit.tacker_clickos.conductor import conductor_server
from tests.unit.tacker_clickos import database
from tests.unit.tacker_clickos import test_early
from tests.unit.tacker_clickos import test_update

_THREADS = 8
_SOON_S = 30
_EARLIER, _LATER = datetime.datetime(2020, 1, 1), datetime.datetime(2999, 1, 1)
_VNF = '/vnf_instances/' + base.VNF_ID
_OPERATION = f'/vnf_lcm_op_occs/{base.VNF_ID}/'


def _stored(number):
    """Return operations in progress, as rows.open_operations()."""
    return [('operation%d' % each, 'vnf%d' % each) for each in range(number)]


class SharesTest(base.TestCase):

    def setUp(self):
        super().setUp()
        self.total = self.patch(threads, 'total', return_value=_THREADS)
        self.shares = threads.Shares()
        self.end, self.done, self.running = threading.Event(), [], []

    def tearDown(self):
        self.end.set()      # before cleanups join the threads
        super().tearDown()

    def hang(self, project, end=None):
        """Run work that ends with the test; return whether it has begun.

        :param end: an event that ends it earlier
        """
        begun = threading.Event()

        def work():
            self.running.append(project)
            begun.set()
            (end or self.end).wait(_SOON_S)
            self.done.append(project)
        thread = threading.Thread(target=self.shares.run,
                                  args=(project, work))
        thread.start()
        self.addCleanup(thread.join)
        while thread.is_alive() and not begun.wait(0.01):
            pass
        return thread.is_alive()

    def test_a_project_leaves_threads_to_others(self):
        self.assertEqual([True] * 4 + [False] * 6,
                         [self.hang('a') for _ in range(10)])
        self.assertEqual([True, True, False],
                         [self.hang('b') for _ in range(3)])
        self.assertTrue(self.hang('c'))
        self.assertFalse(self.hang('c'))

    def test_a_few_projects_leave_threads_to_others(self):
        self.total.return_value = 64
        held = {}
        for project in 'abcdefgh':
            while self.shares._begin(project, None):
                held[project] = held.get(project, 0) + 1
        self.assertEqual([32, 16, 1, 1, 1, 1, 1, 1], list(held.values()))

    def test_a_thread_that_ends_goes_to_who_has_fewest(self):
        end = threading.Event()
        for _ in range(3):
            self.assertTrue(self.hang('a', end))
        for project in 'aaaacdbbb':
            self.hang(project)
        self.assertEqual(list('aaaacdb'), self.running)
        end.set()
        self.until(lambda: self.shares._held == {'a': 2, 'b': 2, 'c': 1,
                                                 'd': 1})

    def until(self, is_so):
        end_s = time.monotonic() + _SOON_S
        while not is_so():
            self.assertLess(time.monotonic(), end_s, self.shares._held)
            time.sleep(0.01)

    def test_what_waits_runs_when_a_thread_ends(self):
        for _ in range(10):
            self.hang('a')
        self.end.set()
        self.doCleanups()
        self.assertEqual(['a'] * 10, self.done)
        self.assertEqual((0, {}), (self.shares._held.total(),
                                   self.shares._waiting))

    def test_a_part_of_work_needs_no_thread(self):
        self.total.return_value = 1
        self.shares.run('a', lambda: self.shares.run('a', lambda: (
            self.done.append(self.shares._held.total()))))
        self.assertEqual(([1], {}), (self.done, self.shares._held))
        self.shares.run('a', self.end.set)
        self.assertTrue(self.end.is_set())

    def test_an_answer_needs_a_thread(self):
        self.assertEqual(7, self.shares.answer('a', lambda: 7))
        for _ in range(4):
            self.assertTrue(self.hang('a'))
        with self.assertRaisesRegex(exception.Busy, 'holds 4 of 8 threads'):
            self.shares.answer('a', self.fail)
        self.assertEqual(8, self.shares.answer('b', lambda: 8))
        self.assertEqual({'a': 4}, self.shares._held)

    def test_what_waits_for_an_answer_runs_after_it(self):
        self.total.return_value = 1

        def work():
            self.shares.run('a', self.end.set)
            return self.end.is_set()
        self.assertFalse(self.shares.answer('a', work))
        self.assertTrue(self.end.wait(_SOON_S))
        self.until(lambda: not self.shares._held)

    def test_a_failure_is_that_of_its_own_message(self):
        def fail():
            other = threading.Thread(target=self.shares.run,
                                     args=('a', wait))
            other.start()
            other.join()      # it waits: this one has the thread
            raise ValueError

        def wait():
            self.done.append('a')
            raise KeyError
        self.total.return_value = 1
        with self.assertLogs('tacker_clickos.threads', 'ERROR'), \
                self.assertRaises(ValueError):
            self.shares.run('a', fail)
        self.assertEqual((['a'], 0), (self.done, self.shares._held.total()))

    def test_what_waits_is_bounded(self):
        for _ in range(4):
            self.hang('a')
        for _ in range(threads.MAX_WAITING):
            self.shares.run('a', self.fail)
        with self.assertRaisesRegex(exception.Busy, '256 operations of the '
                                    'project wait .*, the limit is 256'):
            self.shares.run('a', self.fail)
        self.shares._waiting.clear()


def _call(name, *arguments, **named):
    """Call an operation of a conductor with fewer arguments than it has."""
    vars(conductor_server.Conductor)[name]('conductor', *arguments, **named)


class ConductorTest(database.DatabaseTestCase):

    def test_every_operation_passes_the_shares(self):
        threads.install()
        threads.install()
        run = self.patch(threads._shares, 'run')
        context = types.SimpleNamespace(project_id='p')
        for name in threads._OPERATIONS:
            _call(name, context, vnf_instance='v')
            project, work, _later = run.call_args.args
            self.assertEqual('p', project)
            self.assertFalse(hasattr(work.func, 'is_shared'))
        self.assertEqual(len(threads._OPERATIONS), run.call_count)

    def test_tests_of_subscriptions_pass_the_shares(self):
        threads.install()
        answer = self.patch(threads._shares, 'answer', return_value=0)
        context = types.SimpleNamespace(project_id='p')
        test = vars(conductor_server.Conductor)['test_notification']
        self.assertEqual(0, test('conductor', context,
                                 vnf_lcm_subscription='s'))
        self.assertEqual('p', answer.call_args.args[0])
        answer.side_effect = exception.Busy(reason='full')
        self.assertEqual(-1, test('conductor', context))

    def test_a_notification_without_a_thread_is_not_sent(self):
        threads.install()
        self.patch(threads._shares, 'run', side_effect=exception.Busy(
            reason='full'))
        with self.assertLogs('tacker_clickos.threads', 'WARNING'):
            _call('send_notification',
                  types.SimpleNamespace(project_id='p'), {})

    def test_a_refused_change_has_failed(self):
        threads.install()
        self.patch(threads._shares, 'run',
                   side_effect=exception.Busy(reason='the limit is 256'))
        conductor_server.Conductor.update(
            'conductor', self.context, body_data={}, vnfd_pkg_data={},
            vnfd_id='d', vnf_lcm_opoccs={
                'id': base.VNF_ID, 'vnf_instance_id': base.VNF_ID,
                'tenant_id': 't', 'state_entered_time': timeutils.utcnow(),
                'operationParams': '{}'})
        operation = self.operation()
        self.assertEqual(('FAILED', 'the limit is 256'), (
            operation.operation_state, operation.error.detail))
        with self.assertRaises(exception.Busy):
            _call('heal', self.context)

    def test_what_ended_while_it_waited_is_not_carried_out(self):
        threads.install()
        run = self.patch(threads._shares, 'run')
        self.make_operation('HEAL', 'FAILED_TEMP', 60)
        operation = self.operation()
        done = []
        self.patch(coordination.COORDINATOR, 'get_lock',
                   side_effect=lambda name: done.append(name) or 1 / 0)
        for named in ({'vnf_lcm_op_occs_id': base.VNF_ID, 'vnf_dict': {},
                       'heal_vnf_request': None},
                      {'vnf_info': {'vnf_lcm_op_occ': operation},
                       'scale_vnf_request': None}):
            name = 'heal' if 'vnf_dict' in named else 'scale'
            getattr(conductor_server.Conductor, name)(
                'conductor', self.context, vnf_instance={'id': 'v'}, **named)
            later = run.call_args.args[2]
            with self.assertRaises(ZeroDivisionError):
                later()             # a retry, begun before it waited
            self.change(models.VnfLcmOpOccs, state_entered_time=_LATER)
            with self.assertLogs('tacker_clickos.threads', 'WARNING'):
                later()
            self.change(models.VnfLcmOpOccs, state_entered_time=_EARLIER)
        self.assertEqual(['v', 'v'], done)


class FilterTest(test_early.EarlyTestCase):

    def setUp(self):
        super().setUp()
        self.make_vnf()
        self.context.project_id = 't'

    def test_a_change_during_an_operation(self):
        change = _VNF, {'vnfInstanceName': 'n'}, 'PATCH'
        self.make_operation('HEAL', 'STARTING', 5)
        self.assertRefused(409, f'VNF {base.VNF_ID}: operation HEAL '
                           f'{base.VNF_ID} is STARTING', *change)
        self.change(models.VnfLcmOpOccs, operation_state='COMPLETED')
        self.assertPasses(*change)

    def test_a_change_waits_for_one_other(self):
        """An earlier one may have its verdict, and not be over."""
        change = _VNF, {'vnfInstanceName': 'n'}, 'PATCH'
        self.make_operation('MODIFY_INFO', 'PROCESSING', 5)
        one = early.tacker_db.open_operations_of(base.VNF_ID, _EARLIER)
        found = self.patch(
            early.tacker_db, 'open_operations_of', return_value=[
                *one, ('b', 'MODIFY_INFO', 'STARTING')])
        self.assertRefused(409, f'VNF {base.VNF_ID}: operation MODIFY_INFO '
                           f'{base.VNF_ID} is PROCESSING', *change)
        found.return_value = one
        self.assertPasses(*change)

    def test_a_change_whose_conductor_died(self):
        self.make_operation('MODIFY_INFO', 'PROCESSING', 61)
        self.assertPasses(_VNF, {'vnfInstanceName': 'n'}, 'PATCH')

    def test_operations_of_a_project_are_bounded(self):
        count = self.patch(early.tacker_db, 'open_operations',
                           return_value=_stored(early.MAX_OPEN))
        self.assertRefused(429, '128 of this project are in progress, the '
                           'limit is 128', _VNF + '/heal', {})
        count.assert_called_once_with('t')
        # A failed one that begins again has no body.
        for word in ('retry', 'rollback'):
            self.assertRefused(429, 'the limit is 128', _OPERATION + word)
        for word in ('fail', 'cancel'):
            self.send(_OPERATION + word)
        self.assertEqual(2, len(self.reached))

    def test_operations_that_begin_together_are_bounded(self):
        """Tacker stores them a moment after they were counted."""
        stored, answers = [], []

        def found(_project_id):
            found = list(stored)
            eventlet.sleep(0)
            return found
        self.patch(early.tacker_db, 'open_operations', side_effect=found)

        def store():
            operation_id = self.reached[-1].split('/')[2]
            eventlet.sleep(0)
            stored.append((operation_id, 'v'))
            eventlet.sleep(0)
        self.on_request = store

        def send(number):
            answers.append(self.send(
                '/vnf_lcm_op_occs/%x/rollback' % number)[0])
        for each in [eventlet.spawn(send, number)
                     for number in range(early.MAX_OPEN + 9)]:
            each.wait()
        self.assertEqual({202: early.MAX_OPEN, 429: 9},
                         collections.Counter(answers))
        self.assertEqual({}, early._beginning)

    def test_an_operation_counts_once_when_it_is_stored(self):
        """Tacker answers a moment later, for example after Keystone."""
        others = _stored(early.MAX_OPEN - 2)
        stored = [*others, ('old', base.VNF_ID)]
        found = self.patch(early.tacker_db, 'open_operations',
                           return_value=stored)
        with early.begun(self.context, _VNF + '/heal'):
            # The row of an earlier operation of the VNF is not its own.
            self.assertRefused(429, '128 of this project', '/vnf_instances/a'
                               '/heal', {})
            found.return_value = [*others, ('new', base.VNF_ID)]
            self.assertPasses('/vnf_instances/a/heal', {})

    def test_an_operation_begins_again_once(self):
        """Tacker would take both, and roll back what the retry did."""
        answers = []

        def again():
            self.on_request = lambda: None
            for word in ('retry', 'rollback'):
                answers.append(self.send(_OPERATION + word)[0])
        self.on_request = again
        self.assertEqual(202, self.send(_OPERATION + 'retry')[0])
        self.assertEqual([409, 409], answers)
        self.assertEqual(202, self.send(_OPERATION + 'rollback')[0])
        self.assertEqual({}, early._beginning)

    def test_operations_that_begin_while_a_body_comes_count(self):
        self.patch(early.tacker_db, 'open_operations',
                   side_effect=[[], _stored(early.MAX_OPEN)])
        self.assertRefused(429, 'the limit is 128', _VNF + '/heal', {})

    def test_what_is_over_does_not_count(self):
        self.make_operation('HEAL', 'STARTING', 5)
        self.assertEqual(([(base.VNF_ID, base.VNF_ID)], []),
                         (early.tacker_db.open_operations('t'),
                          early.tacker_db.open_operations('x')))
        self.change(models.VnfLcmOpOccs,
                    operation_state='FAILED_TEMP')
        self.assertEqual([], early.tacker_db.open_operations('t'))


class LockTest(test_update.UpdateTest):
    """Another update, perhaps of another conductor, has the VNF."""

    def test_an_update_does_not_wait_for_a_hung_one(self):
        waited = []

        class Taken(test_update._Lock):
            def __call__(self, blocking):
                waited.append(blocking)
                raise tooz_coordination.LockAcquireFailed('taken')
        management.coordination.COORDINATOR.get_lock.side_effect = Taken
        verdict = self.update({'rules': ['deny all']})
        self.assertEqual([management._LOCK_S], waited)
        self.assertEqual(('refused', 1), (verdict['verdict'],
                                          verdict['number']))
        self.assertIn('another update still waits for its guests after 5 s',
                      verdict['message'])
        self.assertNotIn('clickos_request', self.vnf.vnf_metadata)
        self.assertEqual({'rules': ['allow icmp']}, self.in_force())
        management.coordination.COORDINATOR.get_lock.side_effect = \
            test_update._Lock
        self.assertEqual(2, self.update({'rules': ['deny all']})['number'])

    def test_the_holder_takes_the_next_number(self):
        def refused_meanwhile(context, vnf_id):
            self.vnf.vnf_metadata = dict(
                self.vnf.vnf_metadata, clickos_update=json.dumps(
                    {'verdict': 'refused', 'number': 7}))
            return self.vnf
        objects.VnfInstance.get_by_id.side_effect = refused_meanwhile
        self.assertEqual(8, self.update({'rules': ['allow all']})['number'])
