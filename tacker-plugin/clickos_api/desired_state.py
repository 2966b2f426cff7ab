# SPDX-License-Identifier: Apache-2.0
"""Desired state: the handler writes a server's guests have accepted."""

import contextlib
import dataclasses
import datetime

from oslo_db import exception as db_exc
from oslo_db.sqlalchemy import enginefacade
from oslo_log import log as logging
from oslo_utils import excutils
import sqlalchemy as sa

from clickos_api.db import models
from clickos_api import errors

LOG = logging.getLogger(__name__)


@dataclasses.dataclass(frozen=True)
class State:
    """A server's desired state.

    :param revision: how many writes were accepted; 0 if none
    :param writes: [[handler, value], ...], the last written last
    """

    revision: int = 0
    writes: list = dataclasses.field(default_factory=list)


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


class Store:
    """The desired state of all servers, in the database."""

    def __init__(self, conf):
        self._facade = enginefacade.transaction_context()
        self._facade.configure(**conf.database)
        self._lock_timeout_s = conf.clickos_api.rpc_timeout
        self._max_handlers = conf.clickos_api.max_writes
        self._max_bytes = conf.clickos_api.max_state_bytes

    def read(self, server_id):
        """Return a server's State.

        :raises errors.Unavailable: if the database fails
        """
        with _database(), self._facade.reader.using(_Context()) as session:
            row = session.get(models.DesiredState, server_id)
            return State(row.revision, row.writes) if row else State()

    def delete(self, server_id):
        """Forget a server; may be called twice.

        :raises errors.Unavailable: if the database fails
        """
        with _database(), self._facade.writer.using(_Context()) as session:
            session.execute(sa.delete(models.DesiredState).where(
                models.DesiredState.server_id == server_id))

    @contextlib.contextmanager
    def writing(self, server_id, writes):
        """Hold a server's state while its guest takes writes.

        Leaving the block records the writes; an exception in it leaves
        everything as it was. One block at a time runs for a server, whatever
        process it is in.

        :returns: context manager giving the new revision
        :raises errors.BadRequest: if the state would grow over its limits
        :raises errors.Unavailable: if the database fails, another write holds
            the server for too long, or (code not-recorded) what the guest
            accepted could not be recorded
        """
        try:
            with self._recording(server_id, writes) as revision:
                yield revision
        except Exception:
            with excutils.save_and_reraise_exception():
                self._drop_empty_row(server_id)

    @contextlib.contextmanager
    def _recording(self, server_id, writes):
        accepted = False
        try:
            self._ensure_row(server_id)
            with self._facade.writer.using(_Context()) as session:
                row = self._lock(session, server_id)
                merged = merge(row.writes, writes)
                self._check_size(server_id, merged)
                row.writes = merged
                row.revision += 1
                row.updated_at = _now()
                session.flush()
                yield row.revision
                accepted = True
        except db_exc.DBError as exc:
            if accepted:
                raise _not_recorded(server_id, exc)
            if isinstance(exc, db_exc.DBDeadlock):
                raise _busy(server_id)
            raise _unavailable(exc)

    def _drop_empty_row(self, server_id):
        """Remove the row of a server whose first write came to nothing.

        Another writer that holds the row records a revision or drops the
        row itself.
        """
        try:
            with self._facade.writer.using(_Context()) as session:
                row = session.scalars(
                    sa.select(models.DesiredState)
                    .where(models.DesiredState.server_id == server_id,
                           models.DesiredState.revision == 0)
                    .with_for_update(skip_locked=True)).one_or_none()
                if row is not None:
                    session.delete(row)
        except db_exc.DBError as exc:
            LOG.warning('Server %s: an empty row may be left: %s', server_id,
                        exc)

    def _ensure_row(self, server_id):
        """Make the server's row, if it has none, in a transaction of its own.

        Made inside the long transaction, a row that is rolled back would let
        the writers that wait for it run into a deadlock.
        """
        try:
            with self._facade.writer.using(_Context()) as session:
                if session.get(models.DesiredState, server_id) is None:
                    session.add(models.DesiredState(
                        server_id=server_id, revision=0, writes=[],
                        updated_at=_now()))
        except db_exc.DBDuplicateEntry:
            LOG.debug('Server %s: another writer made the row', server_id)

    def _lock(self, session, server_id):
        """Return the server's row, locked until the transaction ends."""
        if session.get_bind().dialect.name in ('mysql', 'mariadb'):
            session.execute(sa.text('SET SESSION innodb_lock_wait_timeout'
                                    ' = :seconds'),
                            {'seconds': self._lock_timeout_s})
        row = session.scalars(
            sa.select(models.DesiredState)
            .where(models.DesiredState.server_id == server_id)
            .with_for_update()).one_or_none()
        if row is None:   # removed since _ensure_row
            raise _busy(server_id)
        return row

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
