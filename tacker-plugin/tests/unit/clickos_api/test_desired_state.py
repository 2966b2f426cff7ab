# SPDX-License-Identifier: Apache-2.0
"""The store of desired state on its own."""

import os
import unittest

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

    def test_a_failing_block_records_nothing(self):
        with self.store.writing(SERVER, [['a.x', '1']]):
            pass
        with self.assertRaises(errors.Silent):
            with self.store.writing(SERVER, [['a.x', '2']]) as revision:
                self.assertEqual(2, revision)
                raise errors.Silent('nothing heard')
        self.assertEqual(desired_state.State(1, [['a.x', '1']]),
                         self.store.read(SERVER))

    def test_a_refused_first_write_leaves_no_row(self):
        for failure in (errors.Silent('nothing heard'), ZeroDivisionError()):
            with self.assertRaises(type(failure)):
                with self.store.writing(SERVER, [['a.x', '1']]):
                    self.assertEqual(1, self.rows())
                    raise failure
            self.assertEqual(0, self.rows())
        with self.assertRaises(errors.BadRequest):
            with self.store.writing(SERVER, [['a.x', '1' * 2000]]):
                self.fail('the guest may not be asked')
        self.assertEqual(0, self.rows())

    def rows(self):
        engine = self.store._facade.writer.get_engine()
        with engine.connect() as connection:
            return connection.scalar(
                sa.text('SELECT COUNT(*) FROM desired_state'))

    def test_text_beyond_the_basic_plane_survives(self):
        with self.store.writing(SERVER, [['a.x', '\u00fc\U0001f525']]):
            pass
        self.assertEqual([['a.x', '\u00fc\U0001f525']],
                         self.store.read(SERVER).writes)

    def test_what_cannot_be_recorded_is_said(self):
        """The guest has the value, the database loses the transaction."""
        engine = self.store._facade.writer.get_engine()

        def fail(connection):
            raise db_exc.DBConnectionError()

        with self.assertRaises(errors.Unavailable) as caught:
            with self.store.writing(SERVER, [['a.x', '1']]):
                sa.event.listen(engine, 'commit', fail)
        sa.event.remove(engine, 'commit', fail)
        self.assertEqual('not-recorded', caught.exception.code)
        self.assertIn('write them again', caught.exception.message)
        self.assertEqual(0, self.store.read(SERVER).revision)

    def test_a_lock_that_is_not_granted_is_busy(self):
        engine = self.store._facade.writer.get_engine()

        def fail(*args):
            raise db_exc.DBDeadlock()

        sa.event.listen(engine, 'before_cursor_execute', fail)
        self.addCleanup(sa.event.remove, engine, 'before_cursor_execute',
                        fail)
        with self.assertRaises(errors.Unavailable) as caught:
            with self.store.writing(SERVER, [['a.x', '1']]):
                self.fail('nothing may be written without the lock')
        self.assertEqual('busy', caught.exception.code)

    def test_deleting_twice(self):
        for _ in range(2):
            self.store.delete(SERVER)
        self.assertEqual(desired_state.State(), self.store.read(SERVER))

    def test_upgrade_twice(self):
        path = self.conf.config_file[0]
        self.assertTrue(os.path.exists(path))
        self.assertEqual(0, base.manage.main(['--config-file', path,
                                              'upgrade']))
