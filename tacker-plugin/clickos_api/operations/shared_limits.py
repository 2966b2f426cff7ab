# SPDX-License-Identifier: Apache-2.0
"""Limits that guests share: their ledgers, and the rounds that divide them.

Any process of the service may do the next round of a limit's ledger. A round
takes a version of its row, and none of its writes begins under another one:
the guests refuse writes whose numbers are below those that came later.
"""

from concurrent import futures
import dataclasses
import json
import threading
import time

from oslo_log import log as logging
import sqlalchemy as sa

from clickos_api.db import models
from clickos_api import errors
from clickos_api.operations import changing
from clickos_api.operations import workers
from clickos_api.outside import ownership
from clickos_api.state import sharing
from clickos_api.state import states

LOG = logging.getLogger(__name__)

_ROW = models.SharedLimits
#: Seconds that a process has for a round, before another one begins.
_ROUND_S = 30
#: Seconds that guests have for their answers in a round. Others count as
#: silent, and are asked again when their answers are there.
_ANSWER_S = 1.5
#: The same for the verdicts on writes; a share without one is in doubt.
_VERDICT_S = 3
#: Rounds that a declaration makes itself: two take shares back and give
#: them, and one lets guests leave whose first write was in doubt.
_ROUNDS = 3
#: Threads of a process, for guests and for ledgers.
_GUESTS, _LEDGERS = 32, 8
#: Ledgers that a process looks at in an interval.
_LEDGERS_AT_ONCE = 256


class Lost(errors.Unavailable):
    """Another process has the ledger now."""


@dataclasses.dataclass(frozen=True)
class Turn:
    """A round of a ledger.

    :param key: (project id, id)
    :param version: of the row in this round
    :param ledger: sharing.Ledger
    :param seconds: since the round before
    """

    key: tuple
    version: int
    ledger: sharing.Ledger
    seconds: float


class SharedLimits:
    """The limits of groups of guests, by project and id.

    :param service: service.Service
    """

    def __init__(self, service):
        self._service = service
        self._store = service.store
        self._guests = futures.ThreadPoolExecutor(_GUESTS, 'share')
        self._ledgers = futures.ThreadPoolExecutor(_LEDGERS, 'ledger')
        self._lock = threading.Lock()
        #: {server id: job} of guests that did not answer in their round
        self._late = {}
        self._under_way = set()

    def declare(self, key, limits, server_ids):
        """Set the limits of a group and its guests, and divide them.

        :param limits: [{name, kind, handler, total}]
        :returns: as show()
        :raises errors.Unavailable: (code busy) if a round takes too long
        """
        place = workers.Place(key[1], key[0], 'limits')
        with self._service.bulkhead.read(place):
            self._make(key)
            self._rounds(key, limits, server_ids)
        return self.show(key)

    def show(self, key):
        """Return the limits, with what each guest has and has used.

        :raises errors.NotFound: for an unknown group
        """
        with self._store.reader() as session:
            row = session.get(_ROW, key)
            if row is None:
                raise _missing(key)
            return sharing.Ledger(json.loads(row.ledger)).shown()

    def require_none(self, project_id, servers):
        """Refuse guests with shares, which another guest would not have.

        :raises errors.ApiError: (code shares)
        """
        with self._store.reader() as session:
            texts = session.scalars(sa.select(_ROW.ledger).where(
                _ROW.project_id == project_id)).all()
        members = {server_id for text in texts
                   for server_id in json.loads(text)['members']}
        for server in servers:
            if server.id in members:
                raise errors.ApiError(
                    f'server {server.id}: has shares of limits, which the'
                    ' guest of a fused chain would not have', code='shares',
                    status=409)

    def delete(self, key):
        """Forget limits; the guests keep their shares.

        :raises errors.NotFound: for an unknown group
        """
        with self._store.writer() as session:
            if not session.execute(sa.delete(_ROW).where(_is(key))).rowcount:
                raise _missing(key)

    def _make(self, key):
        with self._store.writer() as session:
            if session.get(_ROW, key) is None:
                session.add(_ROW(
                    project_id=key[0], id=key[1], version=0, busy_until_ms=0,
                    looked_ms=_now_ms(), used_ms=_now_ms(),
                    ledger=json.dumps(sharing.Ledger().content)))

    def _rounds(self, key, limits, server_ids):
        """Declare limits; do rounds until each guest has what it shall have.
        """
        for count in range(_ROUNDS):
            turn = self._wait_for_turn(key)
            if count == 0:
                turn.ledger.declare(limits, server_ids)
            try:
                is_settled = self._round(turn)
            finally:
                self._end(turn)
            if is_settled:
                return

    def _wait_for_turn(self, key):
        deadline_s = time.monotonic() + self._service.options.verdict_wait + 2
        while time.monotonic() < deadline_s:
            turn = self._begin(key)
            if turn:
                return turn
            time.sleep(0.05)
        raise errors.Unavailable(f'limits {key[1]}: a round of them is still'
                                 ' going on; try again', code='busy')

    def work(self):
        """Do the rounds that are due."""
        due_ms = _now_ms() - int(1000 * self._service.options.share_interval)
        with self._store.reader() as session:
            due = [tuple(row) for row in session.execute(
                sa.select(_ROW.project_id, _ROW.id)
                .where(_ROW.looked_ms <= due_ms,
                       _ROW.busy_until_ms < _now_ms())
                .order_by(_ROW.looked_ms).limit(_LEDGERS_AT_ONCE))]
        for key in due:
            with self._lock:
                if key in self._under_way:
                    continue
                self._under_way.add(key)
            self._ledgers.submit(self._work, key)

    def _work(self, key):
        try:
            turn = self._begin(key)
            if turn:
                try:
                    self._round(turn)
                finally:
                    self._end(turn)
        except errors.ApiError as exc:
            LOG.info('Limits %s: %s', key[1], exc.message)
        except Exception:
            LOG.exception('Limits %s', key[1])
        finally:
            with self._lock:
                self._under_way.discard(key)

    def _begin(self, key):
        """Take the next version of a ledger; None while another round is on.
        """
        now_ms = _now_ms()
        with self._store.writer() as session:
            row = session.scalars(sa.select(_ROW).where(_is(key))
                                  .with_for_update()).one_or_none()
            if row is None:
                raise _missing(key)
            if row.busy_until_ms > now_ms:
                return None
            seconds = (now_ms - row.looked_ms) / 1000
            row.version += 1
            row.busy_until_ms = now_ms + 1000 * _ROUND_S
            return Turn(key, row.version,
                        sharing.Ledger(json.loads(row.ledger)), seconds)

    def _keep(self, turn, **values):
        """Store the ledger, unless another round has begun.

        :raises Lost: if one has
        """
        with self._store.writer() as session:
            changed = session.execute(
                sa.update(_ROW)
                .where(_is(turn.key), _ROW.version == turn.version)
                .values(ledger=json.dumps(turn.ledger.content), **values))
            if not changed.rowcount:
                raise Lost(f'limits {turn.key[1]}: another round has begun',
                           code='busy')

    def _end(self, turn):
        """Let other rounds begin."""
        with self._store.writer() as session:
            session.execute(
                sa.update(_ROW)
                .where(_is(turn.key), _ROW.version == turn.version)
                .values(busy_until_ms=0))

    def _round(self, turn):
        """Look at the guests, store what they may have, and write it.

        :returns: True if no guest waits for a share or gives one back
        """
        ledger = turn.ledger
        servers = self._servers(turn)
        found = self._look(ledger, servers)
        for server_id in list(ledger.members):
            ledger.observe(server_id, *found.get(server_id, (None, None)),
                           turn.seconds)
        writes = ledger.plan()
        used = {'used_ms': _now_ms()} if ledger.members else {}
        self._keep(turn, looked_ms=_now_ms(), **used)
        jobs = {server_id: self._guests.submit(
            self._write, turn, servers[server_id], shares)
            for server_id, shares in writes.items()}
        futures.wait(jobs.values(), _VERDICT_S)
        for server_id, job in jobs.items():
            if self._is_accepted(server_id, job):
                ledger.accept(server_id, writes[server_id])
        if writes:
            self._keep(turn)
        return not writes

    def _servers(self, turn):
        """Return {server id: Server} of the guests that can be asked.

        The ledger forgets those whose servers are gone.
        """
        found = {}
        for server_id in list(turn.ledger.members):
            try:
                server = self._service.cloud.server(server_id)
            except ownership.Gone:
                LOG.info('Limits %s: server %s is gone', turn.key[1],
                         server_id)
                turn.ledger.drop(server_id)
            except errors.ApiError as exc:
                LOG.info('Limits %s: %s', turn.key[1], exc.message)
            else:
                if server.project_id == turn.key[0] and server.host:
                    found[server_id] = server
        return found

    def _look(self, ledger, servers):
        """Return {server id: (incarnation, [(share, used)] or None)}."""
        before = self._incarnations(servers)
        reads = [states.Read(name) for name in ledger.handlers()]
        jobs = {}
        for server_id, server in servers.items():
            with self._lock:
                late = self._late.get(server_id)
                if late is None or late.done():
                    self._late[server_id] = jobs[server_id] = \
                        self._guests.submit(self._read, server, reads)
        futures.wait(jobs.values(), _ANSWER_S)
        after = self._incarnations(servers)
        found = {}
        for server_id in servers:
            job = jobs.get(server_id)
            is_good = job and job.done() \
                and before[server_id] == after[server_id]
            found[server_id] = (after[server_id],
                                job.result() if is_good else None)
        with self._lock:
            for server_id in [each for each, job in self._late.items()
                              if job.done()]:
                del self._late[server_id]
        return found

    def _incarnations(self, servers):
        """Return {server id: incarnation or None}, as starts note them."""
        row = models.DesiredState
        keys = {server.state_key: server_id
                for server_id, server in servers.items()}
        with self._store.reader() as session:
            found = {keys[key]: incarnation for key, incarnation in
                     session.execute(sa.select(
                         row.state_key, row.incarnation).where(
                             row.state_key.in_(keys)))}
        return {server_id: found.get(server_id) for server_id in servers}

    def _read(self, server, reads):
        """Return [(share, used)] of a guest; None if it does not answer."""
        try:
            values = self._service.ask(
                server, self._service.agent.handlers_read, reads)
        except errors.ApiError as exc:
            LOG.debug('Server %s: shares: %s', server.id, exc.code)
            return None
        except Exception:
            LOG.exception('Server %s: shares', server.id)
            return None
        numbers = [None if isinstance(value, errors.ApiError)
                   else sharing.number(value) for value in values]
        return None if None in numbers else numbers

    def _write(self, turn, server, shares):
        """Write shares; return True if the guest accepted them."""
        writes = [[name, str(share)] for name, share in zip(
            turn.ledger.handlers(), shares)]
        incarnation = turn.ledger.members[server.id]['incarnation']
        change_id = self._store.begin(
            server.state_key, writes, server.project_id, server.id,
            server.host, may_wait=False)
        change = changing.Change(self._service, server, change_id, writes)

        def send(_change):
            if change_id.incarnation != incarnation:
                raise errors.Unavailable('the guest began again',
                                         code='stale')
            self._require(turn)
            return self._service.agent.handler_write(
                server.host, server.id, change_id, writes)
        if change.carry_out(send) is None:
            return False
        self._forget_change(server.state_key, change_id.number)
        return True

    def _forget_change(self, key, number):
        """Leave the list of changes to those that others make."""
        change = models.Change
        with self._store.writer() as session:
            session.execute(sa.delete(change).where(
                change.state_key == key, change.number == number,
                change.replaced.is_(None)))

    def _require(self, turn):
        """Refuse a write of a round that is over for others.

        The number of the write is taken before: one of a later round is
        higher, so the guest does not take this one after it.
        """
        with self._store.reader() as session:
            version = session.scalar(
                sa.select(_ROW.version).where(_is(turn.key)))
        if version != turn.version:
            raise Lost('another round has begun', code='stale')

    @staticmethod
    def _is_accepted(server_id, job):
        try:
            return job.result(0)
        except (errors.ApiError, futures.TimeoutError) as exc:
            LOG.info('Server %s: a share is in doubt: %s', server_id,
                     getattr(exc, 'message', 'no answer'))
        except Exception:
            LOG.exception('Server %s: a share is in doubt', server_id)
        return False

    def prune(self, older_s):
        """Delete the limits of groups that have had no guest for a time."""
        before_ms = _now_ms() - 1000 * older_s
        with self._store.writer() as session:
            session.execute(sa.delete(_ROW).where(
                _ROW.used_ms < before_ms, _ROW.busy_until_ms < _now_ms()))


def _is(key):
    return sa.and_(_ROW.project_id == key[0], _ROW.id == key[1])


def _now_ms():
    return time.time_ns() // 1_000_000


def _missing(key):
    return errors.NotFound(f'limits {key[1]} could not be found',
                           code='no-such-limits')
