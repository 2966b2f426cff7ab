# SPDX-License-Identifier: Apache-2.0
"""The store of desired state on its own."""

import datetime
import os
import unittest
from unittest import mock

from alembic import command
from oslo_db import exception as db_exc
import sqlalchemy as sa

from clickos_api import desired_state
from clickos_api import errors
from tests.unit.clickos_api import base

SERVER = '5b44afc9-c234-4d8a-abd6-12bbb452ea9a'


class MergeTest(unittest.TestCase):
    """The last value of each handler, in order of last write."""

    def test_merge(self):
        for kept, writes, expected in (
                ([], [], []),
                ([], [['a.x', '1'], ['a.x', '2']], [['a.x', '2']]),
                ([['a.x', '1'], ['b.x', '1']], [['a.x', '2']],
                 [['b.x', '1'], ['a.x', '2']]),
                ([['a.x', '1']], [['A.x', '2']],
                 [['a.x', '1'], ['A.x', '2']])):
            self.assertEqual(expected, desired_state.merge(kept, writes))


class StoreTest(base.TestCase):
    """Writes that the store records, and others that it does not."""

    def setUp(self):
        super().setUp()
        self.store = desired_state.Store(self.conf)

    def write(self, writes, applied=()):
        """Write as a guest that accepts it."""
        attempt = self.store.begin(SERVER, writes)
        return self.store.accept(SERVER, attempt, applied)

    def test_a_failed_attempt_records_nothing(self):
        self.write([['a.x', '1']])
        for is_refused in (True, False):
            attempt = self.store.begin(SERVER, [['a.x', '2']])
            self.store.fail(SERVER, attempt, is_refused)
            self.assertEqual(desired_state.State(1, [['a.x', '1']]),
                             self.store.read(SERVER))

    def test_a_refused_first_write_leaves_no_row(self):
        attempt = self.store.begin(SERVER, [['a.x', '1']])
        self.assertEqual(1, self.rows())
        self.store.fail(SERVER, attempt, True)
        self.assertEqual(0, self.rows())

    def test_a_write_above_the_limit_gets_no_number(self):
        self.write([['a.x', '1']])
        with self.assertRaises(errors.BadRequest):
            self.store.begin(SERVER, [['a.x', '1' * 2000]])
        self.assertEqual(2, self.write([['a.x', '2']]))

    def test_an_attempt_without_answer_counts_if_the_agent_applied_it(self):
        for is_applied in (True, False):
            self.store.delete(SERVER)
            late = self.store.begin(SERVER, [['a.x', '1'], ['b.x', '1']])
            self.store.fail(SERVER, late, False)
            self.assertEqual(0, self.store.read(SERVER).revision)
            self.write([['a.x', '2']], [late] if is_applied else [])
            self.assertEqual([['b.x', '1'], ['a.x', '2']] if is_applied
                             else [['a.x', '2']],
                             self.store.read(SERVER).writes)

    def test_numbers_grow_after_a_deletion(self):
        first = self.store.begin(SERVER, [['a.x', '1']])
        self.store.delete(SERVER)
        self.assertGreater(self.store.begin(SERVER, [['a.x', '2']]), first)

    def test_numbers_grow_while_the_clock_goes_back(self):
        first = self.store.begin(SERVER, [['a.x', '1']])
        self.store.fail(SERVER, first, False)
        with mock.patch('time.time_ns', autospec=True, return_value=0):
            self.assertEqual(first + 1,
                             self.store.begin(SERVER, [['a.x', '2']]))

    def test_silence_keeps_few_attempts(self):
        attempts = []
        for value in range(20):
            attempts.append(self.store.begin(SERVER, [['a.x', str(value)]]))
            self.store.fail(SERVER, attempts[-1], False)
        self.assertEqual(8, self.write([['b.x', '']], attempts))

    def test_another_writer_waits_for_its_turn(self):
        self.store.begin(SERVER, [['a.x', '1']])
        self.store._turn_s = -1
        with self.assertRaises(errors.Unavailable) as caught:
            self.store.begin(SERVER, [['a.x', '2']])
        self.assertEqual('busy', caught.exception.code)

    def test_a_dead_writer_holds_nobody_for_ever(self):
        first = self.store.begin(SERVER, [['a.x', '1']])
        later = desired_state._now() + datetime.timedelta(seconds=4)
        with mock.patch.object(desired_state, '_now', autospec=True,
                               return_value=later):
            self.write([['a.x', '2']])
        with self.assertRaises(errors.Unavailable) as caught:
            self.store.accept(SERVER, first, [])
        self.assertEqual('not-recorded', caught.exception.code)
        self.assertEqual([['a.x', '2']], self.store.read(SERVER).writes)

    def rows(self):
        engine = self.store._facade.writer.get_engine()
        with engine.connect() as connection:
            return connection.scalar(
                sa.text('SELECT COUNT(*) FROM desired_state'))

    def test_text_beyond_the_basic_plane_survives(self):
        self.write([['a.x', '\u00fc\U0001f525']])
        self.assertEqual([['a.x', '\u00fc\U0001f525']],
                         self.store.read(SERVER).writes)

    def test_what_cannot_be_recorded_is_said(self):
        """The guest has the value; the next answer of the agent tells."""
        engine = self.store._facade.writer.get_engine()

        def fail(connection):
            raise db_exc.DBConnectionError()

        attempt = self.store.begin(SERVER, [['a.x', '1']])
        sa.event.listen(engine, 'commit', fail)
        with self.assertRaises(errors.Unavailable) as caught:
            self.store.accept(SERVER, attempt, [])
        sa.event.remove(engine, 'commit', fail)
        self.assertEqual('not-recorded', caught.exception.code)
        self.assertIn('write them again', caught.exception.message)
        self.assertEqual(0, self.store.read(SERVER).revision)
        self.store.fail(SERVER, attempt, False)
        self.write([['b.x', '2']], [attempt])
        self.assertEqual([['a.x', '1'], ['b.x', '2']],
                         self.store.read(SERVER).writes)

    def test_a_lock_that_is_not_granted_is_busy(self):
        engine = self.store._facade.writer.get_engine()

        def fail(*args):
            raise db_exc.DBDeadlock()

        self.store._turn_s = -1
        sa.event.listen(engine, 'before_cursor_execute', fail)
        self.addCleanup(sa.event.remove, engine, 'before_cursor_execute',
                        fail)
        with self.assertRaises(errors.Unavailable) as caught:
            self.store.begin(SERVER, [['a.x', '1']])
        self.assertEqual('busy', caught.exception.code)

    def test_deleting_twice(self):
        for _ in range(2):
            self.store.delete(SERVER)
        self.assertEqual(desired_state.State(), self.store.read(SERVER))

    def test_upgrade_keeps_what_was_recorded(self):
        engine = self.store._facade.writer.get_engine()
        with engine.begin() as connection:
            alembic = base.manage.alembic_for(connection)
            command.downgrade(alembic, '0001')
            connection.execute(sa.text(
                'INSERT INTO desired_state VALUES (:server, 7,'
                ' \'[["a.x", "1"]]\', \'2026-01-01\')'), {'server': SERVER})
            command.upgrade(alembic, 'head')
        self.assertEqual(desired_state.State(7, [['a.x', '1']]),
                         self.store.read(SERVER))
        self.assertEqual(8, self.write([['a.x', '2']]))

    def test_upgrade_twice(self):
        path = self.conf.config_file[0]
        self.assertTrue(os.path.exists(path))
        self.assertEqual(0, base.manage.main(['--config-file', path,
                                              'upgrade']))
