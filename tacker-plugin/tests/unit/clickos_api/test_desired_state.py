# SPDX-License-Identifier: Apache-2.0
"""The store of desired state on its own."""

from concurrent import futures
import dataclasses
import datetime
import os
import threading
import time
import unittest
from unittest import mock
import uuid

from alembic import command
from oslo_db import exception as db_exc
import sqlalchemy as sa

from clickos_api.db import models
from clickos_api import errors
from clickos_api.state import desired_state
from clickos_api.state import history
from clickos_api.state import keys
from clickos_api.state import states
from tests.unit.clickos_api import base

NO = errors.BadRequest('no')
SERVER_ID = '5b44afc9-c234-4d8a-abd6-12bbb452ea9a'
SERVER = keys.of_server(SERVER_ID)
CONFIG = {'config': 'Idle;', 'config_name': 'c'}


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
            self.assertEqual(expected, states.merge(kept, writes))


class ValuesTest(unittest.TestCase):
    """The writes of a change that are kept."""

    def test_commands_and_edits_are_left_out(self):
        writes = [['c.reset', ''], ['fw.config', 'x'], ['rt.add', '::/0']]
        passing = states.Passing(commands=(0,), edits=(2, 9, -1))
        self.assertEqual([['fw.config', 'x']],
                         states.values(writes, passing))
        self.assertEqual(writes, states.values(writes))
        self.assertEqual({'config': ''}, states.values({'config': ''},
                                                       passing))
        self.assertEqual(['rt.add'], states.names(writes, passing.edits))


class StoreTest(base.TestCase):
    """Writes that the store records, and others that it does not."""

    def setUp(self):
        super().setUp()
        self.store = desired_state.Store(self.conf)

    def begin(self, writes):
        """Begin a change; return its number."""
        return self.store.begin(SERVER, writes).number

    def read(self):
        """Return the state without its newest number."""
        return dataclasses.replace(self.store.read(SERVER), number=0)

    def test_a_late_verdict_keeps_values_only(self):
        first = self.begin([['c.reset', ''], ['fw.config', 'old']])
        self.store.fail(SERVER, first)   # no verdict came in time
        second = self.begin([['rt.add', '10.0.0.0/8 0']])
        self.store.settle(SERVER, second, {
            'applied': [first, second], 'refused': [], 'pending': [],
            'passing': {first: states.Passing(commands=(0,)),
                        second: states.Passing(edits=(0,))}})
        self.assertEqual([['fw.config', 'old']], self.read().writes)
        self.assertEqual(1, self.read().revision)
        self.assertEqual([], history.at(self.store, SERVER, 0).writes)

    def test_commands_take_no_place_of_revisions(self):
        self.write([['fw.config', 'old']])
        self.write([['fw.config', 'new']])
        for _ in range(desired_state.MAX_REVISIONS + 20):
            number = self.begin([['c.reset', '']])
            self.assertEqual(2, self.store.accept(
                SERVER, number, (), passing={
                    number: states.Passing(commands=(0,))}))
        self.assertEqual([['fw.config', 'old']],
                         history.at(self.store, SERVER, 1).writes)
        self.assertEqual([], history.at(self.store, SERVER, 0).writes)
        found = history.change(self.store, SERVER, number)
        self.assertEqual(('applied', 2), (found['status'],
                                          found['revision']))
        # The changes that are kept have a bound, too.
        self.assertEqual(2 + desired_state._REFUSALS, len(
            history.changes(self.store, SERVER)))

    def write(self, writes, applied=()):
        """Write as a guest that accepts it."""
        number = self.begin(writes)
        return self.store.accept(SERVER, number, applied)

    def test_a_failed_attempt_records_nothing(self):
        self.write([['a.x', '1']])
        for error in (NO, None):
            number = self.begin([['a.x', '2']])
            self.store.fail(SERVER, number, error)
            self.assertEqual(states.State(1, [['a.x', '1']]),
                             self.read())

    def test_a_refused_write_is_told(self):
        number = self.begin([['a.x', '1']])
        self.store.fail(SERVER, number, NO)
        found = history.change(self.store, SERVER, number)
        self.assertEqual(('refused', {'code': 'bad-request', 'message': 'no'}),
                         (found['status'], found['error']))
        with self.assertRaises(errors.NotFound):
            history.change(self.store, SERVER, number + 1)

    def test_few_verdicts_are_kept(self):
        for value in range(40):
            self.store.fail(SERVER, self.begin([['a.x', str(value)]]), NO)
            self.write([['a.x', str(value)]])
        kept = [each['status'] for each in history.changes(self.store,
                                                           SERVER)]
        self.assertEqual((8, 16), (kept.count('applied'),
                                   kept.count('refused')))

    def test_earlier_revisions(self):
        seen = []
        for change in ([['a.x', '1']], [['b.x', '2'], ['c.x', '3']],
                       [['a.x', '4']], {'config': 'Idle', 'config_name': 'i'},
                       [['b.x', '5']], [['b.x', '6'], ['d.x', '7']]):
            self.write(change)
            seen.append(self.read())
        for state in seen:
            found = history.at(self.store, SERVER, state.revision)
            self.assertEqual(state, found)
        for revision in (7, -1):
            with self.assertRaises(errors.NotFound):
                history.at(self.store, SERVER, revision)
        for value in range(8):
            self.write([['a.x', str(value)]])
        with self.assertRaises(errors.NotFound):
            history.at(self.store, SERVER, 5)

    def test_a_write_above_the_limit_gets_no_number(self):
        self.write([['a.x', '1']])
        with self.assertRaises(errors.TooLarge):
            self.begin([['a.x', '1' * 2000]])
        self.assertEqual(2, self.write([['a.x', '2']]))

    def test_an_attempt_without_answer_counts_if_the_agent_applied_it(self):
        for is_applied in (True, False):
            self.store.delete(SERVER)
            late = self.begin([['a.x', '1'], ['b.x', '1']])
            self.store.fail(SERVER, late)
            self.assertEqual(0, self.store.read(SERVER).revision)
            self.write([['a.x', '2']], [late] if is_applied else [])
            self.assertEqual([['b.x', '1'], ['a.x', '2']] if is_applied
                             else [['a.x', '2']],
                             self.store.read(SERVER).writes)

    def test_numbers_grow_after_a_deletion(self):
        first = self.begin([['a.x', '1']])
        self.store.delete(SERVER)
        self.assertGreater(self.begin([['a.x', '2']]), first)

    def test_numbers_grow_while_the_clock_goes_back(self):
        first = self.begin([['a.x', '1']])
        self.store.fail(SERVER, first)
        with mock.patch('time.time_ns', autospec=True, return_value=0):
            self.assertEqual(first + 1,
                             self.begin([['a.x', '2']]))

    def test_silence_keeps_few_attempts(self):
        for value in range(8):
            self.store.fail(SERVER, self.begin([['a.x', str(value)]]))
        self.store._turn_s = -1
        with self.assertRaises(errors.Unavailable) as caught:
            self.begin([['a.x', '9']])
        self.assertEqual('busy', caught.exception.code)

    def test_a_project_has_a_quota(self):
        self.store._max_project_bytes = 1000
        for size, words in ((600, None), (300, None), (200, 'quota is 1000')):
            key = keys.of_server(str(uuid.uuid4()))
            change = [['a.x', 'x' * size]]
            if words:
                with self.assertRaises(errors.TooLarge) as caught:
                    self.store.begin(key, change, 'mine')
                self.assertIn(words, caught.exception.message)
                self.store.begin(key, change, 'theirs')
            else:
                ticket = self.store.begin(key, change, 'mine')
                self.store.accept(key, ticket.number, [])

    def test_a_state_without_texts_counts_too(self):
        self.store._max_project_bytes = 3000
        found = {'config': 'x', 'config_name': 'c'}
        for _ in range(2):
            self.store.create('mine', found, [])
        with self.assertRaises(errors.TooLarge) as caught:
            self.store.create('mine', found, [])
        self.assertIn('would have 3078 bytes, the quota is 3000',
                      caught.exception.message)
        self.store.create('theirs', found, [])

    def changes_bytes(self):
        """Return the bytes that all changes have in the database."""
        with self.store.reader() as session:
            return sum(states.stored(row.replaced or row.body) for row in
                       session.scalars(sa.select(models.Change)))

    def test_texts_to_be_restored_have_a_quota(self):
        self.store._max_project_bytes = 20_000
        found = []
        for _ in range(6):
            state_id = self.store.create('mine', CONFIG, [])
            found.append(keys.of_state('mine', state_id))
            for text in ('x' * 1000, 'y' * 1000, 'z'):
                self.assertTrue(self.store.rebase(
                    found[-1], {**CONFIG, 'config': text}, []))
        self.assertLess(9000, self.changes_bytes())
        self.assertLessEqual(self.changes_bytes(), 10_000)
        self.assertEqual('x' * 1000, history.at(
            self.store, found[0], 2).configuration['config'])
        with self.assertRaises(errors.NotFound):
            history.at(self.store, found[-1], 2)
        self.assertEqual('z', self.store.read(
            found[-1]).configuration['config'])
        with self.store.reader() as session:
            self.assertEqual(self.changes_bytes(),
                             self.store._used(session, 'mine')[1])

    def test_changes_without_a_verdict_have_a_quota(self):
        self.store._max_project_bytes = 3000
        names = [keys.of_server(str(uuid.uuid4())) for _ in range(3)]
        change = [['a.x', 'x' * 900]]
        tickets = [self.store.begin(key, change, 'mine') for key in names]
        with self.assertRaisesRegex(errors.TooLarge, 'changes .* is 3000'):
            self.store.begin(SERVER, change, 'mine')
        self.store.begin(SERVER, change, 'theirs')
        self.store.fail(names[0], tickets[0].number, NO)
        self.store.begin(names[0], change, 'mine')

    def test_changes_of_an_earlier_release_count_with_the_next_one(self):
        state_id = self.store.create('mine', CONFIG, [])
        key = keys.of_state('mine', state_id)
        self.store.rebase(key, {**CONFIG, 'config': 'x' * 1000}, [])
        self.store.rebase(key, CONFIG, [])
        with self.store.writer() as session:
            session.execute(sa.update(models.Change).values(size=None))
            session.execute(sa.update(models.DesiredState).values(
                base_size=None, changes_size=None))
        self.store.begin(key, [['a.x', '1']], 'mine')
        with self.store.reader() as session:
            size, of_changes = self.store._used(session, 'mine')
        self.assertEqual(1024 + 2 * len(CONFIG['config']), size)
        self.assertEqual(self.changes_bytes(), of_changes)

    def test_pages_of_changes_without_a_verdict(self):
        names = sorted(keys.of_server(str(uuid.uuid4())) for _ in range(5))
        for key in names:
            self.store.begin(key, [['a.x', '1']])
        found, after = [], ''
        while page := history.unsettled(self.store, -9, after, 2):
            found += [each[0] for each in page]
            after = found[-1]
        self.assertEqual(names, found)

    def test_a_long_reason_is_cut(self):
        number = self.begin([['a.x', '1']])
        self.store.fail(SERVER, number, errors.BadRequest('x' * 9999))
        self.assertEqual(4000, len(history.change(
            self.store, SERVER, number)['error']['message']))

    def test_another_writer_waits_for_its_turn(self):
        self.begin([['a.x', '1']])
        self.store._turn_s = -1
        with self.assertRaises(errors.Unavailable) as caught:
            self.begin([['a.x', '2']])
        self.assertEqual('busy', caught.exception.code)

    def test_writers_of_a_process_look_one_at_a_time(self):
        """Each looks once a change ends, not again and again."""
        self.store._turn_s = 240
        first = self.begin([['a.x', '0']])
        tries = []
        attempt = self.store._try_to_begin

        def count(*arguments):
            tries.append(threading.current_thread())
            return attempt(*arguments)

        def write(value):
            number = self.store.begin(SERVER, [['a.x', value]]).number
            self.store.accept(SERVER, number, [number])
        with mock.patch.object(self.store, '_try_to_begin', count), \
                mock.patch.object(desired_state, '_LOOK_S', 240), \
                futures.ThreadPoolExecutor(5) as pool:
            writers = [pool.submit(write, str(n)) for n in range(5)]
            while not tries:
                time.sleep(0.01)
            self.store.accept(SERVER, first, [first])
            for each in writers:
                each.result()
        self.assertEqual(6, self.store.read(SERVER).revision)
        # Each may look once before, and once after the end of another.
        self.assertLessEqual(len(tries), 15)
        self.assertEqual(set(), self.store._turns._taken)

    def test_a_dead_writer_holds_nobody_for_ever(self):
        first = self.begin([['a.x', '1']])
        later = desired_state.now() + datetime.timedelta(seconds=4)
        with mock.patch.object(desired_state, 'now', autospec=True,
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

        number = self.begin([['a.x', '1']])
        sa.event.listen(engine, 'commit', fail)
        with self.assertRaises(errors.Unavailable) as caught:
            self.store.accept(SERVER, number, [])
        sa.event.remove(engine, 'commit', fail)
        self.assertEqual('not-recorded', caught.exception.code)
        self.assertIn('write them again', caught.exception.message)
        self.assertEqual(0, self.store.read(SERVER).revision)
        self.store.fail(SERVER, number)
        self.write([['b.x', '2']], [number])
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
            self.begin([['a.x', '1']])
        self.assertEqual('busy', caught.exception.code)

    def test_deleting_twice(self):
        for _ in range(2):
            self.store.delete(SERVER)
        self.assertEqual(states.State(), self.store.read(SERVER))

    def test_upgrade_keeps_what_was_recorded(self):
        engine = self.store._facade.writer.get_engine()
        with engine.begin() as connection:
            alembic = base.manage.alembic_for(connection)
            command.downgrade(alembic, '0001')
            connection.execute(sa.text(
                'INSERT INTO desired_state VALUES (:server, 7,'
                ' \'[["a.x", "1"]]\', \'2026-01-01\')'), {'server': SERVER_ID})
            command.upgrade(alembic, 'head')
        self.assertEqual(states.State(7, [['a.x', '1']]), self.read())
        self.assertEqual(8, self.write([['a.x', '2']]))

    def test_upgrade_keeps_pending_changes(self):
        engine = self.store._facade.writer.get_engine()
        with engine.begin() as connection:
            alembic = base.manage.alembic_for(connection)
            command.downgrade(alembic, '0003')
            connection.execute(sa.text(
                'INSERT INTO desired_state (server_id, revision, writes,'
                ' attempt, pending, updated_at) VALUES (:server, 7,'
                ' \'[["a.x", "1"]]\', 9, \'[[9, [["b.x", "2"]]]]\','
                ' \'2026-01-01\')'), {'server': SERVER_ID})
            command.upgrade(alembic, 'head')
        self.assertEqual('pending', history.change(self.store, SERVER,
                                                   9)['status'])
        self.write([['c.x', '3']], [9])
        self.assertEqual(
            states.State(9, [['a.x', '1'], ['b.x', '2'], ['c.x', '3']]),
            self.read())

    def test_upgrade_makes_keys_of_ids(self):
        """user_data keeps its ids, and no project has states of others."""
        own, theirs, squat, hop = (str(uuid.uuid4()) for _ in range(4))
        engine = self.store._facade.writer.get_engine()
        with engine.begin() as connection:
            alembic = base.manage.alembic_for(connection)
            command.downgrade(alembic, '0006')
            for state_id, project_id, server_id, is_referred in (
                    (SERVER_ID, 'mine', SERVER_ID, 0),
                    (own, 'mine', str(uuid.uuid4()), 1),
                    (theirs, 'other', None, 1),
                    (squat, 'other', squat, 1)):
                connection.execute(sa.text(
                    'INSERT INTO desired_state (state_id, project_id,'
                    ' server_id, is_referred, revision, writes, size, number,'
                    ' updated_at) VALUES (:id, :project, :server, :referred,'
                    " 7, '[]', 0, 9, '2026-01-01')"),
                    {'id': state_id, 'project': project_id,
                     'server': server_id, 'referred': is_referred})
                connection.execute(sa.text(
                    'INSERT INTO changes (state_id, number, status,'
                    " created_at) VALUES (:id, 9, 'pending', '2026-01-01')"),
                    {'id': state_id})
                connection.execute(sa.text(
                    'INSERT INTO fused_hops VALUES (:id, :chain, 0, :name,'
                    ' :group, :server, :project)'), {
                        'id': hop if state_id == squat else state_id,
                        'chain': hop, 'name': 'fw', 'group': hop,
                        'server': hop, 'project': 'mine'})
            command.upgrade(alembic, 'head')
            found = {table: set(connection.scalars(sa.text(
                f'SELECT state_key FROM {table}')))
                for table in ('desired_state', 'changes', 'fused_hops')}
        expected = {keys.of_server(SERVER_ID), keys.of_state('mine', own),
                    keys.of_state('other', theirs)}
        self.assertEqual(expected, found['desired_state'])
        self.assertEqual(expected, found['changes'])
        self.assertEqual({keys.of_server(SERVER_ID), keys.of_server(hop),
                          keys.of_state('mine', own),
                          keys.of_state('mine', theirs)}, found['fused_hops'])
        with engine.begin() as connection:
            alembic = base.manage.alembic_for(connection)
            command.downgrade(alembic, '0006')
            self.assertEqual({(SERVER_ID, 0), (own, 1), (theirs, 1)}, set(
                map(tuple, connection.execute(sa.text(
                    'SELECT state_id, is_referred FROM desired_state')))))

    def test_upgrade_twice(self):
        path = self.conf.config_file[0]
        self.assertTrue(os.path.exists(path))
        self.assertEqual(0, base.manage.main(['--config-file', path,
                                              'upgrade']))
