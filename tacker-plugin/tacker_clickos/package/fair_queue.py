# SPDX-License-Identifier: Apache-2.0
"""A few places for many projects; no project waits for another's queue."""

import collections
import contextlib
import threading

from tacker_clickos import exception

#: The part of all entries that only owners without one get.
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


class FairQueue:
    """Gives places to owners in turn.

    An owner has one place at a time. While another owner waits, it gets its
    next place after that one. So an owner waits for at most one turn of each
    other owner. Of the last quarter of all entries an owner gets its first
    one only, so a few owners do not keep out the others.

    :param places: that are given at the same time
    :param of_owner: entries of one owner that wait or have a place
    :param of_all: entries of all owners
    """

    def __init__(self, places, of_owner, of_all):
        self._places = places
        self._of_owner = of_owner
        self._of_all = of_all
        self._changed = threading.Condition()
        self._entries = collections.Counter()
        self._waiting = collections.OrderedDict()
        self._busy = set()

    @contextlib.contextmanager
    def entry(self, owner):
        """Stand in the queue; yields a context manager that has a place.

        :raises: Full
        """
        with self._changed:
            self._enter(owner)
        try:
            yield self._place(owner)
        finally:
            with self._changed:
                self._entries[owner] -= 1
                self._entries += collections.Counter()    # without zeros

    def _enter(self, owner):
        if self._entries[owner] >= self._of_owner:
            raise Full('%d wait already, the limit for a project is %d'
                       % (self._entries[owner], self._of_owner), True)
        free = self._of_all - self._entries.total()
        if free <= 0:
            raise Full('%d of all projects wait already, the limit is %d'
                       % (self._entries.total(), self._of_all), False)
        if self._entries[owner] and free <= self._of_all // _KEPT:
            raise Full('%d of all projects wait already, and the last %d '
                       'places are for projects without one'
                       % (self._entries.total(), self._of_all // _KEPT),
                       False)
        self._entries[owner] += 1

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


class Room:
    """Bytes of owners' requests, while these wait.

    Of the last quarter an owner gets those of its first request only.

    :param of_owner: bytes of one owner
    :param of_all: bytes of all owners
    """

    def __init__(self, of_owner, of_all):
        self._of_owner = of_owner
        self._of_all = of_all
        self._lock = threading.Lock()
        self._held = collections.Counter()

    @contextlib.contextmanager
    def taken(self, owner, size):
        """Keep bytes for an owner.

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
            raise Full('%d bytes wait already, the limit for a project is %d'
                       % (held, self._of_owner), True)
        kept = self._of_all // _KEPT if held else 0
        if total + size > self._of_all - kept:
            raise Full('%d bytes of all projects wait already, the limit is '
                       '%d' % (total, self._of_all - kept), False)
        self._held[owner] += size
