# SPDX-License-Identifier: Apache-2.0
"""Desired state: what a server's guests accepted while they ran."""

import contextlib
import dataclasses
import datetime
import time

from oslo_db import api as db_api
from oslo_db import exception as db_exc
from oslo_db.sqlalchemy import enginefacade
from oslo_log import log as logging
import sqlalchemy as sa

from clickos_api.db import models
from clickos_api import errors

LOG = logging.getLogger(__name__)

#: Seconds between two looks for the end of another attempt.
_LOOK_S = 0.02
#: Seconds an attempt may take beside its RPC, before others go on without it.
_MARGIN_S = 2
#: Attempts without an answer that a server's row keeps, the newest.
_PENDING = 8

_retried = db_api.wrap_db_retry(max_retries=5, retry_on_deadlock=True)


@dataclasses.dataclass(frozen=True)
class State:
    """A server's desired state.

    :param revision: how many writes were accepted; 0 if none
    :param writes: [[handler, value], ...], the last written last
    :param configuration: {'config', 'config_name'} that replaced the first
        one, or None
    """

    revision: int = 0
    writes: list = dataclasses.field(default_factory=list)
    configuration: dict | None = None


@enginefacade.transaction_context_provider
class _Context:
    """The context to which oslo.db ties a transaction."""


def merge(kept, writes):
    """Return what is to be kept after writes: per handler the last value.

    Ordered by each handler's last write, so that writing them again in this
    order ends where the guest is now.
    """
    merged = {name: value for name, value in kept}
    for name, value in writes:
        merged.pop(name, None)
        merged[name] = value
    return [[name, value] for name, value in merged.items()]


def changed(configuration, writes, change):
    """Return configuration and writes after a change.

    A new configuration says all that is in force, so it ends the writes.

    :param change: writes, or a configuration
    """
    if isinstance(change, dict):
        return change, []
    return configuration, merge(writes, change)


class Store:
    """The desired state of all servers, in the database.

    A write takes two short transactions: begin() before the call to the
    agent, and accept() or fail() after it. No lock outlasts a transaction.
    """

    def __init__(self, conf):
        self._facade = enginefacade.transaction_context()
        self._facade.configure(**conf.database)
        self._turn_s = conf.clickos_api.rpc_timeout
        self._max_handlers = conf.clickos_api.max_writes
        self._max_bytes = conf.clickos_api.max_state_bytes

    def read(self, server_id):
        """Return a server's State.

        :raises errors.Unavailable: if the database fails
        """
        with _database(), self._facade.reader.using(_Context()) as session:
            row = session.get(models.DesiredState, server_id)
            return (State(row.revision, row.writes, row.configuration)
                    if row else State())

    def knows(self, server_id):
        """Tell whether anything is kept of a server.

        :raises errors.Unavailable: if the database fails
        """
        with _database(), self._facade.reader.using(_Context()) as session:
            return session.get(models.DesiredState, server_id) is not None

    def delete(self, server_id):
        """Forget a server; may be called twice.

        :raises errors.Unavailable: if the database fails
        """
        with _database(), self._facade.writer.using(_Context()) as session:
            session.execute(sa.delete(models.DesiredState).where(
                models.DesiredState.server_id == server_id))

    def begin(self, server_id, change):
        """Note a change as pending; wait for the end of an earlier attempt.

        :param change: writes, or a configuration
        :returns: the attempt's number, above all earlier ones of the server
        :raises errors.BadRequest: if the state would grow over its limits
        :raises errors.Unavailable: if the database fails, or (code busy)
            earlier attempts take too long
        """
        deadline_s = time.monotonic() + self._turn_s
        while True:
            attempt = self._try_to_begin(server_id, change)
            if attempt is not None:
                return attempt
            if time.monotonic() > deadline_s:
                raise _busy(server_id)
            time.sleep(_LOOK_S)

    def accept(self, server_id, attempt, applied):
        """Record an attempt that the guest accepted.

        The agent applies attempts in the order of their numbers. So it never
        applies an earlier one from here on, and only those in applied count.

        :param applied: numbers of attempts that the agent applied
        :returns: the new revision
        :raises errors.Unavailable: (code not-recorded) if the database fails
        """
        try:
            return self._record(server_id, attempt, applied)
        except db_exc.DBError as exc:
            raise _not_recorded(server_id, exc)

    @_retried
    def _record(self, server_id, attempt, applied):
        with self._facade.writer.using(_Context()) as session:
            row = self._lock(session, server_id)
            if row is None or attempt not in dict(row.pending):
                raise _not_recorded(server_id, 'it is not pending')
            _resolve(row, attempt, {attempt, *applied})
            return row.revision

    def fail(self, server_id, attempt, is_refused):
        """End an attempt that brought no acceptance.

        :param is_refused: the agent refused it; if False, the guest may have
            accepted it, or may still
        """
        try:
            self._end(server_id, attempt, is_refused)
        except db_exc.DBError as exc:
            LOG.warning('Server %s: attempt %d stays pending: %s', server_id,
                        attempt, exc)

    @_retried
    def _end(self, server_id, attempt, is_refused):
        with self._facade.writer.using(_Context()) as session:
            row = self._lock(session, server_id)
            if row is None:
                return
            if row.attempt == attempt:
                row.busy_until = None
            if is_refused:
                row.pending = [each for each in row.pending
                               if each[0] != attempt]
            if not row.revision and not row.pending:
                session.delete(row)

    def _try_to_begin(self, server_id, change):
        """:returns: the attempt's number; None while another one goes on"""
        with _database(), contextlib.suppress(db_exc.DBDeadlock):
            self._ensure_row(server_id)
            with self._facade.writer.using(_Context()) as session:
                row = self._lock(session, server_id)
                if row is None or _is_busy(row):
                    return None
                _, writes = changed(None, row.writes, change)
                self._check_size(server_id, writes)
                self._number(row, change)
                return row.attempt

    def _number(self, row, change):
        """Give the attempt a number.

        It comes from the clock, so it grows even after the row was deleted.
        """
        row.attempt = max(row.attempt + 1, time.time_ns() // 1000)
        row.pending = [*row.pending, [row.attempt, change]][-_PENDING:]
        row.busy_until = _now() + datetime.timedelta(
            seconds=self._turn_s + _MARGIN_S)

    def _ensure_row(self, server_id):
        """Make the server's row, if it has none, in its own transaction.

        Two writers that lock a missing row would run into a deadlock.
        """
        try:
            with self._facade.writer.using(_Context()) as session:
                if session.get(models.DesiredState, server_id) is None:
                    session.add(models.DesiredState(
                        server_id=server_id, revision=0, writes=[],
                        attempt=0, pending=[], updated_at=_now()))
        except db_exc.DBDuplicateEntry:
            LOG.debug('Server %s: another writer made the row', server_id)

    def _lock(self, session, server_id):
        """Return the server's row, locked until the transaction ends."""
        return session.scalars(
            sa.select(models.DesiredState)
            .where(models.DesiredState.server_id == server_id)
            .with_for_update()).one_or_none()

    def _check_size(self, server_id, writes):
        if len(writes) > self._max_handlers:
            raise errors.BadRequest(
                f'server {server_id}: desired state would name {len(writes)}'
                f' handlers, the limit is {self._max_handlers}')
        size = sum(len(part.encode()) for write in writes for part in write)
        if size > self._max_bytes:
            raise errors.BadRequest(
                f'server {server_id}: desired state would have {size} bytes,'
                f' the limit is {self._max_bytes}')


def _is_busy(row):
    return row.busy_until is not None and _now() < row.busy_until


def _resolve(row, attempt, applied):
    """Merge the applied ones of all attempts up to this one, in order."""
    for number, change in row.pending:
        if number <= attempt and number in applied:
            row.configuration, row.writes = changed(
                row.configuration, row.writes, change)
            row.revision += 1
    row.pending = [each for each in row.pending if each[0] > attempt]
    row.updated_at = _now()
    if row.attempt == attempt:
        row.busy_until = None


@contextlib.contextmanager
def _database():
    try:
        yield
    except db_exc.DBError as exc:
        raise _unavailable(exc)


def _busy(server_id):
    return errors.Unavailable(
        f'server {server_id}: another write is still going on; try again',
        code='busy')


def _unavailable(exc):
    LOG.error('Database: %s', exc)
    return errors.Unavailable('the database of clickos-api cannot be used now'
                              '; try again later')


def _not_recorded(server_id, exc):
    LOG.error('Server %s: the guest accepted a write that could not be'
              ' recorded: %s', server_id, exc)
    return errors.Unavailable(
        f'server {server_id}: the guest accepted the values, but they could'
        ' not be recorded, so a restart would lose them; write them again',
        code='not-recorded')


def _now():
    return datetime.datetime.now(datetime.timezone.utc).replace(tzinfo=None)
