# SPDX-License-Identifier: Apache-2.0
"""Limits that guests share: their ledgers, and the rounds that divide them.

Any process of the service may do the next round of a limit's ledger. A round
takes a version of its row, and none of its writes begins under another one:
the guests refuse writes whose numbers are below those that came later.
"""

from concurrent import futures
import dataclasses
import json
import random
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
#: Threads of a process, for guests and for ledgers, and how many of them a
#: project may have. Guests that hang leave half of these to its others, and
#: those of all projects have few.
_GUESTS, _GUESTS_OF_PROJECT, _HUNG = 32, 8, 8
_LEDGERS, _LEDGERS_OF_PROJECT = 8, 2
_CALLED_HUNG_S = 60
#: Seconds after which a round is slow, and for how long its project is called
#: so. Ledgers of slow projects have threads of their own, each project one.
_SLOW_S, _CALLED_SLOW_S = 1, 60
_SLOW_LEDGERS = 4
#: Seconds between two looks for a free thread.
_LOOK_S = 0.02
#: Ledgers whose turn a process takes from the database together, and those of
#: a project.
_LEDGERS_AT_ONCE, _MAX_GROUPS = 4096, 64
#: Guests of a group with those that leave and do not answer.
_MAX_WITH_LEAVING = 2 * sharing.MAX_MEMBERS
#: Codes of a guest's refusals of a write; others may end by themselves.
_REFUSED = frozenset(('handler-error', 'no-such-element', 'no-such-handler',
                      'not-permitted'))
#: How the JSON of a ledger without guests ends.
_NO_MEMBERS = json.dumps(sharing.Ledger().content).rpartition(', ')[2]


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


@dataclasses.dataclass(frozen=True)
class _Late:
    """A guest that did not answer in its round.

    :param job: the request to it
    :param until_s: how long it is called hung, if it does not answer
    """

    project_id: str
    job: futures.Future
    until_s: float

    def counts(self):
        """Return whether it has not answered by now."""
        return not self.job.done() or (
            self.job.result() is None and time.monotonic() < self.until_s)


class SharedLimits:
    """The limits of groups of guests, by project and id.

    :param service: service.Service
    """

    def __init__(self, service):
        self._service = service
        self._store = service.store
        self._guests = workers.Workers(_GUESTS, _GUESTS_OF_PROJECT)
        self._ledgers = futures.ThreadPoolExecutor(_LEDGERS, 'ledger')
        self._slow_ledgers = futures.ThreadPoolExecutor(_SLOW_LEDGERS,
                                                        'slow-ledger')
        self._lock = threading.Lock()
        self._late = {}
        #: (project id, id) of ledgers that have a thread or wait for one,
        #: and by project those that are due, the first one last
        self._under_way, self._due = set(), {}
        #: {project id: how long it is called slow}
        self._slow_until_s = {}

    def declare(self, key, limits, servers):
        """Set the limits of a group and its guests, and divide them.

        :param limits: [{name, kind, handler, total}]
        :param servers: ownership.Server of each guest
        :returns: as show()
        :raises errors.NotFound: for a server of another project
        :raises errors.ApiError: (codes fused and shares) for a guest that
            cannot have the shares
        :raises errors.TooLarge: if the project has too many groups
        :raises errors.Unavailable: (code busy) if a round takes too long
        """
        place = workers.Place(key[1], key[0], 'limits')
        for server in servers:
            if server.project_id != key[0]:    # the policy may let one pass
                raise errors.NotFound(
                    f'server {server.id} could not be found')
        self._require_no_part(servers)
        with self._service.bulkhead.read(place):
            self._require_room(key, limits, [each.id for each in servers])
            self._make(key)
            self._rounds(key, limits, servers)
        return self.show(key)

    def _require_no_part(self, servers):
        for server in servers:
            self._service.fusing.require_no_part(server)

    def _require_room(self, key, limits, server_ids):
        """Refuse one group too many, and a handler that another one writes.
        """
        others = self._of_project(key[0])
        found = others.pop(key[1], None)
        count = sum(not each.is_deleted for each in others.values())
        if count >= _MAX_GROUPS:
            raise errors.TooLarge(
                f'limits: the project has {count} already, the limit is'
                f' {_MAX_GROUPS}', code='over-quota')
        if found is None and len(others) >= 2 * _MAX_GROUPS:
            raise errors.TooLarge(
                f'limits: the project has {len(others)} with deleted ones'
                ' whose guests have shares, the limit is'
                f' {2 * _MAX_GROUPS}', code='over-quota')
        staying = set(found.members if found else ()) | set(server_ids)
        if len(staying) > _MAX_WITH_LEAVING:
            raise errors.TooLarge(
                f'limits {key[1]}: {len(staying)} servers with those that did'
                ' not give their shares back, the limit is'
                f' {_MAX_WITH_LEAVING}')
        handlers = {each['handler'] for each in limits}
        former = found.former_without(handlers) if found else ()
        if len(former) > sharing.MAX_FORMER:
            raise errors.TooLarge(
                f'limits {key[1]}: {len(former)} handlers to be given back,'
                f' the limit is {sharing.MAX_FORMER}')
        _require_free(others, handlers, server_ids)

    def _of_project(self, project_id):
        """Return {id: Ledger} of a project."""
        with self._store.reader() as session:
            return _ledgers(session.execute(_rows_of(project_id)))

    def show(self, key):
        """Return the limits, with what each guest has and has used.

        :raises errors.NotFound: for an unknown group
        """
        with self._store.reader() as session:
            return _known(key, session.get(_ROW, key)).shown()

    def require_none(self, project_id, servers):
        """Refuse guests with shares, which another guest would not have.

        :raises errors.ApiError: (code shares)
        """
        members = {server_id
                   for ledger in self._of_project(project_id).values()
                   if not ledger.is_deleted
                   for server_id in ledger.members}
        for server in servers:
            if server.id in members:
                raise errors.ApiError(
                    f'server {server.id}: has shares of limits, which the'
                    ' guest of a fused chain would not have', code='shares',
                    status=409)

    def delete(self, key):
        """Divide limits no more; the guests keep their shares.

        The ledger stays while a guest may have one. The writes of a round
        that is under way are in it, and it begins no other.

        :raises errors.NotFound: for an unknown group
        """
        with self._store.writer() as session:
            row = session.scalars(sa.select(_ROW).where(_is(key))
                                  .with_for_update()).one_or_none()
            ledger = _known(key, row)
            ledger.delete()
            if ledger.members:
                row.version += 1
                row.busy_until_ms = 0
                row.ledger = json.dumps(ledger.content)
            else:
                session.delete(row)

    def _make(self, key):
        """Make a row, with a version that no deleted row of the id had."""
        with self._store.writer() as session:
            if session.get(_ROW, key) is None:
                session.add(_ROW(
                    project_id=key[0], id=key[1],
                    version=time.time_ns() // 1000, busy_until_ms=0,
                    looked_ms=_now_ms(), used_ms=_now_ms(),
                    ledger=json.dumps(sharing.Ledger().content)))

    def _rounds(self, key, limits, servers):
        """Declare limits; do rounds until each guest has what it shall have.
        """
        for count in range(_ROUNDS):
            turn = self._wait_for_turn(key)
            try:
                if count == 0:
                    self._take(turn, limits, servers)
                is_settled = self._round(turn)
            finally:
                self._end(turn)
            if is_settled:
                return

    def _take(self, turn, limits, servers):
        """Take limits and guests over; a fusion at the same time sees them.

        :raises errors.ApiError: (code fused) if one was faster; (code
            shares) if a guest may get its own share of a handler back yet
        """
        doubts = turn.ledger.in_doubt({each['handler'] for each in limits})
        for server_id, handlers in doubts.items():
            raise errors.ApiError(
                f'server {server_id}: did not say yet whether it has its own'
                f' share at {handlers[0]} again; try again later, or start'
                ' the server again', code='shares', status=409)
        before = json.dumps(turn.ledger.content)
        server_ids = [server.id for server in servers]
        turn.ledger.declare(limits, server_ids)
        self._claim(turn, {each['handler'] for each in limits}, server_ids)
        try:
            self._require_no_part(servers)
        except errors.ApiError:
            self._keep(dataclasses.replace(
                turn, ledger=sharing.Ledger(json.loads(before))))
            raise

    def _claim(self, turn, handlers, server_ids):
        """Store a ledger, unless another one divides a handler, too.

        Both may have been declared since _require_room() looked. The rows of
        the project are locked, so that one of them sees the other.

        :raises errors.ApiError: (code shares) if another one does
        :raises errors.Unavailable: also if both wait for each other's lock
        """
        project_id, own = turn.key
        with self._store.writer() as session:
            self._put(session, turn)
            others = _ledgers(session.execute(
                _rows_of(project_id).with_for_update()))
            others.pop(own)
            _require_free(others, handlers, server_ids)

    def _wait_for_turn(self, key):
        deadline_s = 2 + time.monotonic() \
            + self._service.options.change_wait_timeout
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
        with self._lock:
            self._slow_until_s = {
                project_id: until_s for project_id, until_s
                in self._slow_until_s.items() if self._is_slow(project_id)}
            self._due = {}
            for key in due:
                if key not in self._under_way:
                    self._due.setdefault(key[0], []).insert(0, key)
            projects = list(self._due)
        for project_id in projects * _LEDGERS_OF_PROJECT:
            self._go_on(project_id)

    def _go_on(self, project_id):
        """Let a project's next ledger wait for a thread, after others'."""
        with self._lock:
            is_slow = self._is_slow(project_id)
            due = self._due.get(project_id)
            own = sum(key[0] == project_id for key in self._under_way)
            if not due or own >= (1 if is_slow else _LEDGERS_OF_PROJECT):
                return
            key = due.pop()
            self._under_way.add(key)
        (self._slow_ledgers if is_slow else self._ledgers).submit(
            self._work, key)

    def _is_slow(self, project_id):
        return time.monotonic() < self._slow_until_s.get(project_id, 0)

    def _work(self, key):
        began_s = time.monotonic()
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
                if time.monotonic() > began_s + _SLOW_S:
                    self._slow_until_s[key[0]] = (time.monotonic()
                                                  + _CALLED_SLOW_S)
            self._go_on(key[0])

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
            self._put(session, turn, **values)

    @staticmethod
    def _put(session, turn, **values):
        changed = session.execute(
            sa.update(_ROW)
            .where(_is(turn.key), _ROW.version == turn.version)
            .values(ledger=json.dumps(turn.ledger.content), **values))
        if not changed.rowcount:
            raise Lost(f'limits {turn.key[1]}: another round has begun',
                       code='busy')

    def _remove(self, turn):
        """Forget deleted limits, unless another round has begun."""
        with self._store.writer() as session:
            session.execute(sa.delete(_ROW).where(
                _is(turn.key), _ROW.version == turn.version))

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
        found = self._look(turn.key[0], ledger, servers)
        for server_id in list(ledger.members):
            ledger.observe(server_id, *found.get(server_id, (None, None)),
                           turn.seconds)
        doubtful = {server_id for server_id, member in ledger.members.items()
                    if member['is_doubtful']}
        writes, restores = ledger.plan(), ledger.restores()
        if ledger.is_deleted and not ledger.members:
            self._remove(turn)
            return True
        used = {'used_ms': _now_ms()} if ledger.members else {}
        self._keep(turn, looked_ms=_now_ms(), **used)
        jobs = self._ask_all(turn.key[0], {
            server_id: (self._write, turn, servers[server_id], [
                [handler, str(share)] for handler, share
                in zip(ledger.handlers(), shares)])
            for server_id, shares in writes.items()}, _VERDICT_S)
        for server_id, job in jobs.items():
            if self._is_accepted(server_id, job, server_id not in doubtful):
                ledger.accept(server_id, writes[server_id])
        self._restore(turn, servers, restores)
        if writes or restores:
            self._keep(turn)
        return not writes and not restores

    def _restore(self, turn, servers, restores):
        """Give guests what they had at handlers that no limit has now."""
        ended = {server_id: [] for server_id in restores}
        jobs = self._ask_all(turn.key[0], {
            server_id: (self._give_back, turn, servers[server_id], shares,
                        ended[server_id])
            for server_id, shares in restores.items()}, _VERDICT_S)
        for server_id, job in jobs.items():
            self._is_accepted(server_id, job, False)
            # The job may go on; what it does from here on is repeated.
            for handler in tuple(ended[server_id]):
                turn.ledger.restored(server_id, handler)

    def _give_back(self, turn, server, shares, ended):
        """Write a guest's own shares, one after the other.

        A guest that refuses one keeps what it has.

        :param shares: {handler: share}
        :param ended: list that gets the handlers that need nothing more
        :returns: True if none is left
        """
        for handler, share in shares.items():
            try:
                if not self._write(turn, server, [[handler, str(share)]]):
                    return False
            except errors.ApiError as exc:
                if exc.code not in _REFUSED:
                    raise
                LOG.info('Server %s: %s: its own share was refused: %s',
                         server.id, handler, exc.message)
            ended.append(handler)
        return True

    def _ask_all(self, project_id, calls, wait_s):
        """Make the calls, as many at a time as the project may.

        :param calls: {key, such as a server id: (function, argument, ...)}
        :param wait_s: after which no call begins or is waited for
        :returns: {key: job} of those that began
        """
        deadline_s, jobs = time.monotonic() + wait_s, {}
        for key, call in calls.items():
            while key not in jobs and time.monotonic() < deadline_s:
                try:
                    jobs[key] = self._guests.submit(project_id, *call)
                except errors.Unavailable:
                    time.sleep(_LOOK_S)
        futures.wait(jobs.values(), max(0, deadline_s - time.monotonic()))
        return jobs

    def _servers(self, turn):
        """Return {server id: Server} of the guests that can be asked.

        The ledger forgets those whose servers are gone.
        """
        found = {}
        for server_id, member in list(turn.ledger.members.items()):
            try:
                server = self._service.cloud.server(server_id)
            except ownership.Gone:
                LOG.info('Limits %s: server %s is gone', turn.key[1],
                         server_id)
                turn.ledger.drop(server_id)
            except errors.ApiError as exc:
                _tell(not member['is_silent'], 'Limits %s: %s', turn.key[1],
                      exc.message)
            else:
                if server.project_id == turn.key[0] and server.host:
                    found[server_id] = server
        return found

    def _look(self, project_id, ledger, servers):
        """Return {server id: (incarnation, [(share, used)] or None)}."""
        before = self._incarnations(servers)
        reads = [states.Read(name) for name in ledger.handlers()]
        jobs = self._ask_all(project_id, {
            server_id: (self._read, servers[server_id], reads)
            for server_id in self._askable(project_id, servers)},
            _ANSWER_S)
        until_s = time.monotonic() + _CALLED_HUNG_S
        with self._lock:
            for server_id, job in jobs.items():
                if job.done():
                    self._late.pop(server_id, None)
                else:
                    self._late[server_id] = _Late(project_id, job, until_s)
        after = self._incarnations(servers)
        found = {}
        for server_id in servers:
            job = jobs.get(server_id)
            is_good = job and job.done() \
                and before[server_id] == after[server_id]
            found[server_id] = (after[server_id],
                                job.result() if is_good else None)
        return found

    def _askable(self, project_id, servers):
        """Return the servers to be asked, those that hung last.

        Few of them are asked at a time. Others are asked in each round.
        """
        with self._lock:
            self._late = {server_id: late for server_id, late
                          in self._late.items() if late.counts()}
            late = dict(self._late)
        waiting = [each for each in late.values() if not each.job.done()]
        own = sum(each.project_id == project_id for each in waiting)
        room = min(_GUESTS_OF_PROJECT // 2 - own, _HUNG - len(waiting))
        hung = [each for each in servers
                if each in late and late[each].job.done()]
        return [each for each in servers if each not in late] \
            + random.sample(hung, max(0, min(room, len(hung))))

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

    def _write(self, turn, server, writes):
        """Write shares; return True if the guest accepted them."""
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
        try:
            return change.carry_out(send) is not None
        finally:
            self._forget_change(server.state_key, change_id.number)

    def _forget_change(self, key, number):
        """Leave the list of changes to those that others make.

        One without a verdict stays, so that it gets one.
        """
        change = models.Change
        with self._store.writer() as session:
            session.execute(sa.delete(change).where(
                change.state_key == key, change.number == number,
                change.status != states.PENDING, change.replaced.is_(None)))

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
    def _is_accepted(server_id, job, is_news):
        try:
            return job.result(0)
        except (errors.ApiError, futures.TimeoutError) as exc:
            _tell(is_news, 'Server %s: a share is in doubt: %s', server_id,
                  getattr(exc, 'message', 'no answer'))
        except Exception:
            LOG.exception('Server %s: a share is in doubt', server_id)
        return False

    def prune(self, older_s):
        """Delete the limits of groups that have had no guest for a time."""
        before_ms = _now_ms() - 1000 * older_s
        with self._store.writer() as session:
            session.execute(sa.delete(_ROW).where(
                _ROW.used_ms < before_ms, _ROW.busy_until_ms < _now_ms(),
                # Without rounds no time is noted.
                _ROW.ledger.endswith(_NO_MEMBERS)))


def _is(key):
    return sa.and_(_ROW.project_id == key[0], _ROW.id == key[1])


def _rows_of(project_id):
    """Return the query of a project's ids and ledgers."""
    return sa.select(_ROW.id, _ROW.ledger).where(
        _ROW.project_id == project_id).order_by(_ROW.id)


def _ledgers(rows):
    return {key: sharing.Ledger(json.loads(text)) for key, text in rows}


def _require_free(others, handlers, server_ids):
    """Refuse a handler of a server that other limits divide.

    :param others: {id: Ledger}
    :raises errors.ApiError: (code shares)
    """
    for other, ledger in others.items():
        shared = {server_id: handlers & ledger.handlers_of(server_id)
                  for server_id in server_ids}
        server_id = next(filter(shared.get, server_ids), None)
        both = shared.get(server_id)
        if both:
            why = (f'has a share of the deleted limits {other}; set'
                   ' these again, or start the server again'
                   if ledger.is_deleted else
                   f'limits {other} divide {min(both)}, too')
            raise errors.ApiError(f'server {server_id}: {why}',
                                  code='shares', status=409)


def _tell(is_news, *what):
    """Log what is so in each round only when it begins."""
    LOG.log(logging.INFO if is_news else logging.DEBUG, *what)


def _now_ms():
    return time.time_ns() // 1_000_000


def _known(key, row):
    """Return the ledger of a row.

    :raises errors.NotFound: for no row, or deleted limits
    """
    ledger = row and sharing.Ledger(json.loads(row.ledger))
    if ledger is None or ledger.is_deleted:
        raise _missing(key)
    return ledger


def _missing(key):
    return errors.NotFound(f'limits {key[1]} could not be found',
                           code='no-such-limits')
