# SPDX-License-Identifier: Apache-2.0
"""Threads that wait for guests, so that the threads of HTTP need not.

A thread of HTTP waits for a guest only while it has a seat. Reads of a guest
take turns: a few are under way, the others queue in their seats for a short
time. A guest has no queue while it is slow, and slow guests share a few
seats. One project never has all seats, nor do two or three.
"""

import collections
from concurrent import futures
import contextlib
import dataclasses
import threading
import time

from clickos_api import errors

#: Changes of one guest that wait 2 s at most, and its reads under way: more of
#: them if it answered the last one in time.
CHANGES, READS, SWIFT_READS = 8, 2, 6
#: Seats of slow guests, beyond the others; how many of them a project may
#: have; and seats that a project leaves.
_OF_SLOW, _SLOW_OF_PROJECT = 4, 3
_FOR_OTHERS = 4
#: Seconds after which a guest is slow, and for how long it is called so.
_SLOW_S = 1
_CALLED_SLOW_S = 60
#: Seconds between two looks whether the guest of a queue has become slow.
_LOOK_S = 0.25
#: Guests whose last answer is remembered.
_GUESTS = 1000


@dataclasses.dataclass(eq=False)
class Seat:
    """A thread of HTTP that waits in a queue, or for a guest.

    :ivar key: of what has the queue, by key_of()
    :ivar is_queued: True while a read waits for its turn
    :ivar asked_s: time of the request to the guest; None before
    :ivar answered_s: time of its answer; None before
    :ivar over: is set when the wait in the queue is over
    """

    project_id: str
    key: tuple
    is_read: bool
    is_queued: bool
    asked_s: float | None = None
    answered_s: float | None = None
    over: threading.Event = dataclasses.field(
        default_factory=threading.Event)

    def ask(self):
        """Note the time of the request to the guest."""
        self.asked_s = time.monotonic()

    def timed(self, method):
        """Return a method that notes when it asks and has its answer."""
        def ask(*arguments):
            self.ask()
            try:
                return method(*arguments)
            finally:
                self.answered_s = time.monotonic()
        return ask

    def took_s(self):
        """Return the seconds that the guest took, until now without answer."""
        if self.asked_s is None:
            return 0
        return (self.answered_s or time.monotonic()) - self.asked_s


@dataclasses.dataclass(frozen=True)
class Place:
    """What has a queue of its own, and is no guest."""

    id: str
    project_id: str
    kind: str


def key_of(place):
    """Return the key of what has a queue.

    An id alone is not one: callers choose the ids of limits, such as that of
    another project's server.

    :param place: ownership.Server or Place
    """
    return place.project_id, _kind(place), place.id


def _kind(place):
    return getattr(place, 'kind', 'server')


class Bulkhead:
    """Seats of HTTP's threads that wait for guests.

    :param limit: seats in all, but for those of slow guests
    :param queue_s: the longest wait for a turn
    """

    def __init__(self, limit, queue_s=0):
        self._limit = limit
        self._queue_s = queue_s
        self._lock = threading.Lock()
        self._seats = []
        self._slow_until_s = collections.OrderedDict()

    @contextlib.contextmanager
    def read(self, server):
        """Wait for the turn of a read, and have it in the context.

        :param server: ownership.Server or Place
        :raises errors.Unavailable: (code busy) if there is no seat, or no
            turn in time
        """
        seat = self._take(server, is_read=True)
        if seat is None:
            raise _busy(server, 'all seats for requests that wait for guests'
                        ' are taken')
        try:
            self._await_turn(server, seat)
            yield
        finally:
            self._leave(seat)

    @contextlib.contextmanager
    def change(self, server):
        """Give the Seat of a change that may wait, or None.

        The caller asks the guest by its timed(): a change may wait for
        earlier ones of other clients, and for the database.
        """
        seat = self._take(server, is_read=False)
        try:
            yield seat
        finally:
            if seat is not None:
                self._leave(seat)

    def _take(self, server, is_read):
        """Return a seat, in the queue or not; None if there is none."""
        with self._lock:
            seat = Seat(server.project_id, key_of(server), is_read,
                        is_read)
            if not self._has_room(seat):
                return None
            self._seats.append(seat)
            self._call()
            return seat

    def _has_room(self, seat):
        of_guest = [each for each in self._seats
                    if each.key == seat.key
                    and each.is_read == seat.is_read]
        if self._is_slow(seat.key):
            if len(of_guest) >= READS or not self._has_slow_seat(seat):
                return False
        elif not seat.is_read and (len(of_guest) >= CHANGES
                                   or not self._has_room_for_change(seat)):
            return False
        return self._has_seat(seat)

    def _has_slow_seat(self, seat):
        """Return whether a seat of slow guests is free.

        Guests that have become slow may have more seats than their project
        may have; that takes none from others.
        """
        slow = collections.Counter(each.project_id for each in self._seats
                                   if self._is_slow(each.key))
        return slow[seat.project_id] < _SLOW_OF_PROJECT and sum(
            min(count, _SLOW_OF_PROJECT)
            for count in slow.values()) < _OF_SLOW

    def _has_room_for_change(self, seat):
        """Changes leave half of the seats to reads, a quarter to others."""
        changes = [each.project_id for each in self._seats
                   if not each.is_read]
        most = max(1, self._limit // 2)
        return len(changes) < most and changes.count(
            seat.project_id) < max(1, most * 3 // 4)

    def _has_seat(self, seat):
        """Return if a seat is free; the longest queue may lose its last.

        Projects whose guests hang have all but the last seats, so of these a
        project leaves as many as it has.
        """
        own = [each for each in self._seats
               if each.project_id == seat.project_id]
        limit = self._limit + _OF_SLOW
        if len(own) >= max(1, limit - _FOR_OTHERS):
            return self._send_away(seat, own)
        free = limit - len(self._seats)
        return free > (len(own) if free <= _FOR_OTHERS else 0) \
            or self._send_away(seat, self._seats)

    def _send_away(self, seat, others):
        """Free the last seat of the longest queue, if the new one's is shorter
        by two.
        """
        queued = [each for each in others if each.is_queued]
        lengths = collections.Counter(each.key for each in queued)
        if not queued:
            return False
        longest, length = lengths.most_common(1)[0]
        if length < lengths[seat.key] + 2:
            return False
        last = [each for each in queued if each.key == longest][-1]
        self._seats.remove(last)
        last.over.set()
        return True

    def _call(self):
        """Begin the reads whose turn it is, in the order of the queue."""
        busy = collections.Counter(
            each.key for each in self._seats
            if each.is_read and not each.is_queued)
        for each in self._seats:
            if each.is_queued \
                    and busy[each.key] < self._reads(each.key):
                busy[each.key] += 1
                each.is_queued = False
                each.ask()
                each.over.set()

    def _reads(self, key):
        """How many reads of a guest may be under way."""
        known_s = self._slow_until_s.get(key)
        return SWIFT_READS if known_s == 0 else READS

    def _is_slow(self, key):
        """True if the last answer was slow, or the next one already is."""
        until_s = self._slow_until_s.get(key, 0)
        return time.monotonic() < until_s or any(
            each.took_s() > _SLOW_S
            for each in self._seats if each.key == key)

    def _await_turn(self, server, seat):
        """Wait in the queue, but not for a guest that has become slow."""
        end_s = time.monotonic() + self._queue_s
        while seat.is_queued and not seat.over.wait(
                min(_LOOK_S, max(0, end_s - time.monotonic()))):
            with self._lock:
                is_slow = self._is_slow(seat.key)
            if is_slow:
                raise _busy(server, 'the guest answers slowly')
            if time.monotonic() >= end_s:
                raise _busy(server, f'no turn in {self._queue_s:g} s, others'
                            ' read from the guest')
        if seat.is_queued:
            raise _busy(server, 'the queue of the guest is the longest one')

    def _leave(self, seat):
        with self._lock:
            if seat in self._seats:
                self._seats.remove(seat)
            if seat.asked_s is not None:
                self._note(seat.key, seat.took_s())
            self._call()

    def _note(self, key, took_s):
        """Remember whether a guest answered in time.

        Callers choose ids of limits, so a project has any number of keys.
        Those do not make it forget that a guest is slow.
        """
        self._slow_until_s.pop(key, None)
        now_s = time.monotonic()
        self._slow_until_s[key] = (
            now_s + _CALLED_SLOW_S if took_s > _SLOW_S else 0)
        if len(self._slow_until_s) > _GUESTS:
            del self._slow_until_s[next(
                (each for each, until_s in self._slow_until_s.items()
                 if until_s <= now_s), next(iter(self._slow_until_s)))]


def _busy(server, why):
    return errors.Unavailable(
        f'{_kind(server)} {server.id}: {why}; try again',
        code='busy')


class Workers:
    """A bounded number of requests to guests.

    One project leaves an eighth of them to others: guests that hang keep
    requests under way. Of this eighth a project has fewer than are free
    besides, so several projects leave some of them, too. With a limit of a
    project that holds for all requests.

    :param limit: requests at a time
    :param of_project: how many of them a project may have, if fewer
    """

    def __init__(self, limit, of_project=None):
        self._limit = limit
        self._leaves = of_project is not None
        self._last = max(1, limit // 8)
        self._of_project = of_project or max(1, limit - self._last)
        self._pool = None
        self._lock = threading.Lock()
        self._busy = collections.Counter()

    @property
    def busy(self):
        """How many requests are under way."""
        return self._busy.total()

    def submit(self, project_id, function, *arguments):
        """Begin a request; return its future.

        :param project_id: of the guest
        :raises errors.Unavailable: (code busy) if too many are under way
        """
        with self._lock:
            self._require_room(project_id)
            self._busy[project_id] += 1
            if self._pool is None:   # not before the WSGI server forks
                self._pool = futures.ThreadPoolExecutor(
                    self._limit, thread_name_prefix='guest')
        return self._pool.submit(self._run, project_id, function, *arguments)

    def _require_room(self, project_id):
        free = self._limit - self._busy.total()
        most = self._of_project
        if self._leaves or free <= self._last:
            most = min(most, free)
        for count, limit, whose in (
                (self._busy.total(), self._limit, ''),
                (self._busy[project_id], most,
                 f' of project {project_id}')):
            if count >= limit:
                raise errors.Unavailable(
                    f'{count} requests to guests{whose} are under way; try'
                    ' again', code='busy')

    def _run(self, project_id, function, *arguments):
        try:
            return function(*arguments)
        finally:
            with self._lock:
                self._busy[project_id] -= 1
                self._busy += collections.Counter()    # without zeros
