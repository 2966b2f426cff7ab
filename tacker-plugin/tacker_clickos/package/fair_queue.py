# SPDX-License-Identifier: Apache-2.0
"""A few places for many projects; no project waits for another's queue."""

import collections
import contextlib
import threading

from tacker_clickos import exception

#: The part of all room that only owners without any get.
_KEPT = 4


class Full(Exception):
    """There is no room for one more.

    :ivar of_owner: whether the owner's own entries fill it
    """

    def __init__(self, reason, of_owner):
        super().__init__(reason)
        self.of_owner = of_owner

    def refusal(self, what):
        """Return what the API says about it.

        :param what: of which there are too many
        """
        kind = exception.TooManyRequests if self.of_owner else exception.Busy
        return kind(reason='%s: %s; try again' % (what, self))


class Room:
    """Room for the requests of owners while they wait.

    Of the last quarter an owner gets that of its first request only, so a few
    owners do not keep out the others.

    :param of_owner: places, or bytes, of one owner
    :param of_all: those of all owners
    :param unit: of what is counted, behind the number
    """

    def __init__(self, of_owner, of_all, unit=''):
        self._of_owner = of_owner
        self._of_all = of_all
        self._unit = unit
        self._lock = threading.Lock()
        self._held = collections.Counter()

    @contextlib.contextmanager
    def taken(self, owner, size=1):
        """Keep room for an owner.

        :raises: Full
        """
        with self._lock:
            self._take(owner, size)
        try:
            yield
        finally:
            with self._lock:
                self._held[owner] -= size
                self._held += collections.Counter()    # without zeros

    def _take(self, owner, size):
        held, total = self._held[owner], self._held.total()
        if held + size > self._of_owner:
            raise Full('%d%s wait already, the limit for a project is %d'
                       % (held, self._unit, self._of_owner), True)
        if total + size > self._of_all:
            raise Full('%d%s of all projects wait already, the limit is %d'
                       % (total, self._unit, self._of_all), False)
        kept = self._of_all // _KEPT
        if held and total + size > self._of_all - kept:
            raise Full('%d%s of all projects wait already, and the last %d '
                       'are for projects without any'
                       % (total, self._unit, kept), False)
        self._held[owner] += size


class FairQueue:
    """Gives places to owners in turn.

    An owner has one place at a time. While another owner waits, it gets its
    next place after that one. So an owner waits for at most one turn of each
    other owner. There is a Room for entries.

    :param places: that are given at the same time
    :param of_owner: entries of one owner that wait or have a place
    :param of_all: entries of all owners
    """

    def __init__(self, places, of_owner, of_all):
        self._places = places
        self._room = Room(of_owner, of_all)
        self._changed = threading.Condition()
        self._waiting = collections.OrderedDict()
        self._busy = set()

    @contextlib.contextmanager
    def entry(self, owner):
        """Stand in the queue; yields a context manager that has a place.

        :raises: Full
        """
        with self._room.taken(owner):
            yield self._place(owner)

    @contextlib.contextmanager
    def _place(self, owner):
        mine = object()
        with self._changed:
            self._waiting.setdefault(owner, collections.deque()).append(mine)
            try:
                self._changed.wait_for(lambda: self._next() == (owner, mine))
            finally:
                self._leave(owner, mine)
            self._busy.add(owner)
        try:
            yield
        finally:
            with self._changed:
                self._busy.remove(owner)
                self._changed.notify_all()

    def _next(self):
        """Return (owner, entry) that gets the next place, or None."""
        if len(self._busy) >= self._places:
            return None
        return next(((owner, line[0]) for owner, line in
                     self._waiting.items() if owner not in self._busy), None)

    def _leave(self, owner, entry):
        """Take an entry out; its owner is the last one then."""
        line = self._waiting.pop(owner)
        line.remove(entry)
        if line:
            self._waiting[owner] = line
        self._changed.notify_all()
