# SPDX-License-Identifier: Apache-2.0
"""Desired state: what a server's guests accepted while they ran."""

import contextlib
import datetime
import time
import types
import uuid

from clickos_client import outcomes
from clickos_client import secrets
from clickos_client import timing
from oslo_db import api as db_api
from oslo_db import exception as db_exc
from oslo_db.sqlalchemy import enginefacade
from oslo_log import log as logging
import sqlalchemy as sa

from clickos_api.db import models
from clickos_api import errors
from clickos_api.state import keys
from clickos_api.state import states
from clickos_api.state import turns

LOG = logging.getLogger(__name__)

#: Seconds between two looks for the end of a change of another process.
_LOOK_S = 0.1
#: Seconds a change may take besides its RPC, before others go on without it.
_MARGIN_S = 2
#: Changes of a state that may wait for a verdict.
_PENDING = 8
#: Bytes of a project's quota for each state that it made, besides its texts.
_STATE_BYTES = 1024
#: Revisions of a state that can be restored, the newest.
MAX_REVISIONS = 8
#: Verdicts without effect on it that a state keeps, the newest; and
#: characters of the reason of each.
_REFUSALS, _REASON = 16, 4000

_retried = db_api.wrap_db_retry(max_retries=5, retry_on_deadlock=True)


@enginefacade.transaction_context_provider
class _Context:
    """The context to which oslo.db ties a transaction."""


class Store:
    """All desired states, in the database.

    A change takes two short transactions: begin() before the call to the
    agent, and a verdict after it. No lock outlasts a transaction.
    """

    def __init__(self, conf):
        self._facade = enginefacade.transaction_context()
        # Threads need no pause for others after each transaction.
        self._facade.configure(**conf.database, thread_checkin=False)
        options = conf.clickos_api
        self._turns = turns.Turns()
        bus_s = timing.bus_s(options.guest_timeout)
        self._turn_s = min(bus_s, options.change_wait_timeout)
        self._busy_s = bus_s + _MARGIN_S
        self._max_handlers = options.max_handlers
        self._max_bytes = options.max_state_bytes
        self._max_project_bytes = options.max_project_bytes

    @contextlib.contextmanager
    def reader(self):
        """Give a session that reads.

        :raises errors.Unavailable: if the database fails
        """
        with database(), self._facade.reader.using(_Context()) as session:
            yield session

    @contextlib.contextmanager
    def writer(self):
        """Give a session that writes.

        :raises errors.Unavailable: if the database fails
        """
        with database(), self._facade.writer.using(_Context()) as session:
            yield session

    def read(self, key):
        """Return a State."""
        with self.reader() as session:
            row = session.get(models.DesiredState, key)
            return states.State(
                row.revision, row.writes, row.configuration, row.number,
                row.project_id, key) if row else states.State(key=key)

    def knows(self, key):
        """Return whether there is a state of a key, without its texts."""
        found = models.DesiredState.state_key
        with self.reader() as session:
            return session.scalar(
                sa.select(found).where(found == key)) is not None

    def delete(self, key):
        """Forget a state and its changes; may be called twice."""
        with self.writer() as session:
            for table in (models.Change, models.DesiredState):
                session.execute(sa.delete(table).where(
                    table.state_key == key))

    def begin(self, key, change, project_id=None, server_id=None,
              host=None, may_wait=True):
        """Note a change as pending; wait for the verdict of an earlier one.

        :param change: writes, or a configuration
        :param may_wait: False to fail at once if there is an earlier one
        :returns: ChangeId
        :raises errors.TooLarge: if the state would grow over its limits
        :raises errors.Unavailable: if the database fails, or (code busy)
            earlier changes take too long
        """
        deadline_s = time.monotonic() + self._turn_s * may_wait
        with self._turns.of(key, self._turn_s * may_wait) as has_turn:
            while has_turn:
                seen = self._turns.ended
                ticket = self._try_to_begin(
                    key, change, project_id, server_id, host)
                if ticket is not None:
                    return ticket
                if time.monotonic() > deadline_s:
                    break
                self._turns.wait(seen, _LOOK_S)
        raise _busy(key)

    def accept(self, key, number, applied, incarnation=None, passing=None):
        """Record a change that the guest accepted.

        A guest takes changes in the order of their numbers. So it never
        takes an earlier one from here on, and only those in applied count.

        :param applied: numbers of changes that the guest accepted
        :param passing: {number: states.Passing} of these changes
        :returns: the new revision
        :raises errors.Unavailable: (code not-recorded) if the database fails
        """
        try:
            return self._record(key, number, applied, incarnation,
                                passing or {})
        except db_exc.DBError as exc:
            raise _not_recorded(key, exc)
        finally:
            self._turns.end()

    @_retried
    def _record(self, key, number, applied, incarnation, passing):
        with self._facade.writer.using(_Context()) as session:
            row = self._lock(session, key)
            found = row and session.get(models.Change, (key, number))
            if found is None or found.status in outcomes.TEXTS:
                raise _not_recorded(key, 'it is not pending')
            if found.status == states.PENDING:
                row.incarnation = incarnation or row.incarnation
                self._apply(session, row, number, {number, *applied}, {},
                            'overtaken', passing=passing)
            return found.revision

    def fail(self, key, number, error=None):
        """End a change that brought no acceptance.

        :param error: errors.ApiError of the guest; None if the guest may
            have accepted the change, or may still
        """
        try:
            self._end(key, number, error)
        except db_exc.DBError as exc:
            LOG.warning('State %s: change %d stays pending: %s', key,
                        number, exc)
        finally:
            self._turns.end()

    @_retried
    def _end(self, key, number, error):
        with self._facade.writer.using(_Context()) as session:
            row = self._lock(session, key)
            found = row and session.get(models.Change, (key, number))
            if found is None:
                return
            if row.number == number:
                row.busy_until = None
            if error is not None and found.status == states.PENDING:
                _close(found, error.code, error.message)
                self._compact(session, row)

    def settle(self, key, number, known):
        """Take over the verdicts that an agent knows.

        The agent takes no change up to number any more.

        :param number: up to which changes are settled
        :param known: the agent's {'incarnation', 'applied': [number],
            'refused': [{'number', 'code', 'message'}], 'pending': [number],
            maybe 'passing': {number: states.Passing}, and maybe 'why', a code
            of outcomes for those it does not know}
        """
        with self.writer() as session:
            row = self._lock(session, key)
            if row is None:
                return
            refused = {each['number']: outcomes.of_ledger(
                each['code'], each['message']) for each in known['refused']}
            self._apply(session, row, number, set(known['applied']), refused,
                        _why(row, known), set(known['pending']),
                        known.get('passing', {}))

    def start(self, key, seen, incarnation, server_id=None,
              project_id=None):
        """Note a new start of the guest, with the state that was read.

        Changes without a verdict were for the guest before: they are lost.
        No verdict about them counts any more.

        :param seen: State that the guest has
        :returns: False if the state is a newer one; then nothing is done
        """
        with self.writer() as session:
            row = self._lock(session, key)
            if row is None:
                return seen.revision == 0 and seen.number == 0
            if (row.number, row.revision) != (seen.number, seen.revision):
                return False
            self._apply(session, row, row.number, set(), {}, 'restarted')
            row.incarnation, row.gone_at = incarnation, None
            row.busy_until = None
            row.server_id = server_id or row.server_id
            row.project_id = row.project_id or project_id
            return True

    def _apply(self, session, row, number, applied, refused, why,
               pending=(), passing=types.MappingProxyType({})):
        """Settle all changes up to number, in order.

        :param refused: {number: (code, message)}
        :param why: the code of outcomes for the other ones
        """
        for change in self._pending(session, row.state_key):
            if change.number > number or change.number in pending:
                continue
            if change.number in applied:
                self._take(row, change, passing.get(change.number))
            else:
                _close(change, *refused.get(change.number, (
                    why, outcomes.message(why))))
            if row.number == change.number:
                row.busy_until = None
        self._compact(session, row)

    def _take(self, row, change, passing):
        """Change the state as a change says that the guest accepted."""
        kept = states.values(change.body, passing)
        if kept:    # else it is no revision, and takes no older one's place
            change.replaced = states.replaced(row.configuration, row.writes,
                                              kept)
            row.configuration, row.writes = states.changed(
                row.configuration, row.writes, kept)
            row.revision += 1
            row.size = states.size(row.configuration, row.writes)
            row.updated_at = now()
        change.status, change.revision = states.APPLIED, row.revision
        change.body, change.size = None, states.stored(change.replaced)

    def _compact(self, session, row):
        """Forget the oldest verdicts, and revisions that have no room."""
        session.flush()
        key, table = row.state_key, models.Change
        for is_revision, limit in ((True, MAX_REVISIONS),
                                   (False, _REFUSALS)):
            old = session.scalars(
                sa.select(table.number)
                .where(table.state_key == key,
                       table.replaced.is_not(None) if is_revision else
                       table.replaced.is_(None),
                       table.status != states.PENDING)
                .order_by(models.Change.number.desc()).offset(limit)
                .limit(1000)).all()
            if old:
                session.execute(sa.delete(models.Change).where(
                    models.Change.state_key == key,
                    models.Change.number.in_(old)))
        self._weigh(session, row)
        self._make_room(session, row)

    def _weigh(self, session, row):
        """Count the bytes of a state's changes and of what it began with."""
        table = models.Change
        for change in session.scalars(sa.select(table).where(
                table.state_key == row.state_key, table.size.is_(None))):
            change.size = states.stored(change.replaced or change.body)
        if row.base_size is None:
            row.base_size = _base_size(row.base)
        session.flush()
        row.changes_size = int(session.scalar(
            sa.select(sa.func.coalesce(sa.func.sum(table.size), 0))
            .where(table.state_key == row.state_key)))

    def _make_room(self, session, row):
        """Forget the oldest texts to restore, if a project has too many.

        Changes have as many bytes as states, the quota: a half for these
        texts, so that others can be under way.
        """
        if not row.changes_size or row.project_id is None:
            return
        session.flush()
        excess = (self._used(session, row.project_id)[1]
                  - self._max_project_bytes // 2)
        if excess <= 0:
            return
        table, old = models.Change, []
        for number, size in session.execute(
                sa.select(table.number, table.size)
                .where(table.state_key == row.state_key,
                       table.replaced.is_not(None))
                .order_by(table.number)):
            if excess > 0:
                excess -= size
                row.changes_size -= size
                old.append(number)
        if old:
            session.execute(
                sa.update(table).where(table.state_key == row.state_key,
                                       table.number.in_(old))
                .values(replaced=sa.null(), size=0))

    def _pending(self, session, key):
        return session.scalars(
            sa.select(models.Change)
            .where(models.Change.state_key == key,
                   models.Change.status == states.PENDING)
            .order_by(models.Change.number)).all()

    def _try_to_begin(self, key, change, project_id, server_id, host):
        """:returns: ChangeId; None while another change continues"""
        with database(), contextlib.suppress(db_exc.DBDeadlock):
            for _ in range(2):
                with self._facade.writer.using(_Context()) as session:
                    row = self._lock(session, key)
                    if row is not None:
                        return self._begin(session, row, change, project_id,
                                           server_id, host)
                if keys.is_reference(key):
                    raise missing(key)
                self._make_row(key)

    def _begin(self, session, row, change, project_id, server_id, host):
        if row.busy_until is not None and now() < row.busy_until:
            return None
        pending = self._pending(session, row.state_key)
        if len(pending) >= _PENDING:
            raise _busy(row.state_key)
        row.project_id = row.project_id or project_id
        row.server_id = server_id or row.server_id
        self._check_size(session, row, change)
        size = states.stored(change)
        self._check_changes(session, row, size)
        # From the clock, so it grows even after the row was deleted.
        row.number = max(row.number + 1, time.time_ns() // 1000)
        row.busy_until = now() + datetime.timedelta(seconds=self._busy_s)
        session.add(models.Change(
            state_key=row.state_key, number=row.number, host=host,
            status=states.PENDING, body=change, size=size,
            created_at=now()))
        self._weigh(session, row)
        return states.ChangeId(row.number, row.incarnation)

    def _make_row(self, key, **values):
        """Make a row in a transaction of its own.

        Two writers that lock a missing row would run into a deadlock.
        """
        try:
            with self._facade.writer.using(_Context()) as session:
                session.add(models.DesiredState(**{
                    'state_key': key, 'revision': 0, 'writes': [],
                    'size': 0, 'number': 0, 'updated_at': now(), **values}))
        except db_exc.DBDuplicateEntry:
            LOG.debug('State %s: another writer made the row', key)
            return False
        return True

    def create(self, project_id, configuration, writes):
        """Make a state that user_data is to refer to; return its id.

        The id is random, so no caller can make its state first.

        :raises errors.TooLarge: if it is over the limits
        """
        state_id = str(uuid.uuid4())
        key = keys.of_state(project_id, state_id)
        base = {'configuration': configuration, 'writes': writes}
        base_size = _base_size(base)
        with self.reader() as session:
            self._check(session, key, project_id, configuration, writes,
                        -_STATE_BYTES - base_size)
        with database():
            self._make_row(
                key, project_id=project_id, configuration=configuration,
                writes=writes, revision=1, base=base, base_size=base_size,
                size=states.size(configuration, writes))
        return state_id

    def rebase(self, key, configuration, writes, keep=None):
        """Give a state a configuration, under the writes that it has.

        :param keep: handlers whose writes stay, None for all
        :returns: False if the state is so already
        :raises errors.NotFound: if there is no such state
        :raises errors.TooLarge: if it is over the limits
        """
        with self.writer() as session:
            row = self._lock(session, key)
            if row is None:
                raise missing(key)
            kept = [pair for pair in row.writes
                    if keep is None or pair[0] in keep]
            merged = states.merge(writes, kept)
            if row.configuration == configuration and merged == row.writes:
                return False
            base = {'configuration': configuration, 'writes': writes}
            base_size = _base_size(base)
            before = row.base_size or 0
            self._check(session, key, row.project_id, configuration, merged,
                        row.size + before - base_size)
            row.base, row.base_size = base, base_size
            self._set(session, row, configuration, merged)
            return True

    def reset(self, key):
        """Forget the changes of a state.

        A state that user_data refers to is as it was made; another one is
        gone. May be called twice.
        """
        with self.writer() as session:
            row = self._lock(session, key)
            if row is not None and row.base:
                self._set(session, row, row.base['configuration'],
                          row.base['writes'])
                return
        self.delete(key)

    def _set(self, session, row, configuration, writes):
        """Set a state without a guest, as a change of its own."""
        row.number = max(row.number + 1, time.time_ns() // 1000)
        change = models.Change(
            state_key=row.state_key, number=row.number, created_at=now(),
            status=states.APPLIED, revision=row.revision + 1,
            replaced={'configuration': row.configuration,
                      'writes': row.writes})
        change.size = states.stored(change.replaced)
        session.add(change)
        row.configuration, row.writes = configuration, writes
        row.revision += 1
        row.size = states.size(configuration, writes)
        row.updated_at = now()
        self._compact(session, row)

    def _lock(self, session, key):
        """Return the state's row, locked until the transaction ends."""
        return session.scalars(
            sa.select(models.DesiredState)
            .where(models.DesiredState.state_key == key)
            .with_for_update()).one_or_none()

    def _check_size(self, session, row, change):
        configuration, writes = states.changed(row.configuration, row.writes,
                                               change)
        self._check(session, row.state_key, row.project_id, configuration,
                    writes, row.size)

    def _check(self, session, key, project_id, configuration, writes,
               before):
        """Refuse a state that is over a limit.

        :param before: bytes that the state has now, of the quota
        """
        if len(writes) > self._max_handlers:
            raise errors.TooLarge(
                f'state {keys.name(key)}: desired state would name'
                f' {len(writes)} handlers, the limit is {self._max_handlers}')
        size = states.size(None, writes)
        if size > self._max_bytes:
            raise errors.TooLarge(
                f'state {keys.name(key)}: desired state would have {size}'
                f' bytes of handlers, the limit is {self._max_bytes}')
        growth = states.size(configuration, writes) - before
        if project_id is None or growth <= 0:
            return
        self._require_room(project_id, 'desired state would have', growth
                           + self._used(session, project_id)[0])

    def _check_changes(self, session, row, size):
        """Refuse a change, if too many bytes of others have no verdict."""
        if row.project_id is not None:
            self._require_room(
                row.project_id, 'changes that are under way and to be restored'
                ' would have', size
                + self._used(session, row.project_id)[1])

    def _require_room(self, project_id, what, size):
        if size > self._max_project_bytes:
            raise errors.TooLarge(
                f'project {project_id}: {what} {size} bytes, the quota is'
                f' {self._max_project_bytes}', code='over-quota')

    def _used(self, session, project_id):
        """Return the bytes of a project's states, and of their changes."""
        row, total = models.DesiredState, sa.func.sum
        made = sa.case((row.state_key.startswith(keys.REFERENCES),
                        _STATE_BYTES), else_=0)
        found = session.execute(sa.select(
            total(row.size + made + sa.func.coalesce(row.base_size, 0)),
            total(sa.func.coalesce(row.changes_size, 0)))
            .where(row.project_id == project_id)).one()
        return tuple(int(each or 0) for each in found)


def _base_size(base):
    """Return the bytes of what a state began with, for the quota."""
    return states.size(base['configuration'], base['writes']) if base else 0


def _close(change, code, message):
    """End a change that the guest did not take, as far as is known."""
    change.status = outcomes.of(code)
    if change.status == outcomes.REFUSED and isinstance(change.body, list) \
            and secrets.references(change.body):
        message = secrets.shown(code, message)
    change.error = {'code': code, 'message': message[:_REASON]}
    change.body, change.size = None, 0


def _why(row, known):
    """Return why an agent does not know a change of a state."""
    started = known.get('incarnation')
    if started and row.incarnation and started != row.incarnation:
        return 'restarted'
    return known.get('why', 'not-received')


@contextlib.contextmanager
def database():
    """Turn errors of the database into errors.Unavailable."""
    try:
        yield
    except db_exc.DBError as exc:
        raise _unavailable(exc)


def missing(key):
    """Return the error that there is no state of a key."""
    return errors.NotFound(f'state {keys.name(key)} could not be found',
                           code='no-such-state')


def _busy(key):
    return errors.Unavailable(
        f'state {keys.name(key)}: another write is still going on; try'
        ' again',
        code='busy')


def _unavailable(exc):
    LOG.error('Database: %s', exc)
    return errors.Unavailable('the database of clickos-api cannot be used now'
                              '; try again later')


def _not_recorded(key, exc):
    LOG.error('State %s: the guest accepted a change that could not be'
              ' recorded: %s', key, exc)
    return errors.Unavailable(
        f'state {keys.name(key)}: {outcomes.CAUSES["not-recorded"][1]}',
        code='not-recorded')


def now():
    """Return the time as the database has it."""
    return datetime.datetime.now(datetime.timezone.utc).replace(tzinfo=None)
