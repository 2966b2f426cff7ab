# SPDX-License-Identifier: Apache-2.0
"""Threads that wait for guests, so that the threads of HTTP need not.

A thread of HTTP waits for a guest only while it has a place. A guest has few
places, and guests that were slow share a few others. So slow guests never
take all threads of HTTP.
"""

import collections
from concurrent import futures
import contextlib
import threading
import time

from clickos_api import errors

#: Threads of HTTP that may wait for one guest, of which others change it and
#: wait 2 s at most; and for all slow guests.
READS, CHANGES = 2, 8
_OF_SLOW = 4
#: Seconds after which a guest is slow, and for how long it is called so.
_SLOW_S = 1
_CALLED_SLOW_S = 60
_SLOW_GUESTS = 1000


class Places:
    """Places of HTTP's threads that wait for guests.

    :param limit: places in all
    """

    def __init__(self, limit):
        self._limit = limit
        self._lock = threading.Lock()
        self._taken = collections.Counter()
        self._slow = collections.OrderedDict()

    @contextlib.contextmanager
    def place(self, server_id, of_a_guest):
        """Tell for the time of the context whether there is a place.

        :param of_a_guest: READS or CHANGES
        """
        kind = self._enter(server_id, of_a_guest)
        began_s = time.monotonic()
        try:
            yield kind is not None
        finally:
            if kind is not None:
                self._leave(server_id, kind, time.monotonic() - began_s)

    def _enter(self, server_id, of_a_guest):
        with self._lock:
            is_slow = time.monotonic() < self._slow.get(server_id, 0)
            kind = 'slow' if is_slow else 'swift'
            limit = _OF_SLOW if is_slow else self._limit
            if (self._taken[kind] >= limit
                    or self._taken[server_id] >= of_a_guest):
                return None
            self._taken[kind] += 1
            self._taken[server_id] += 1
            return kind

    def _leave(self, server_id, kind, took_s):
        with self._lock:
            self._taken[kind] -= 1
            self._taken[server_id] -= 1
            if not self._taken[server_id]:
                del self._taken[server_id]
            self._slow.pop(server_id, None)
            if took_s > _SLOW_S:
                self._slow[server_id] = time.monotonic() + _CALLED_SLOW_S
            if len(self._slow) > _SLOW_GUESTS:
                self._slow.popitem(last=False)


class Workers:
    """A bounded number of requests to guests.

    :param limit: requests at a time
    """

    def __init__(self, limit):
        self._limit = limit
        self._pool = None
        self._lock = threading.Lock()
        self._busy = 0

    @property
    def busy(self):
        """How many requests are under way."""
        return self._busy

    def submit(self, function, *arguments):
        """Begin a request; return its future.

        :raises errors.Unavailable: (code busy) if too many are under way
        """
        with self._lock:
            if self._busy >= self._limit:
                raise errors.Unavailable(
                    f'{self._limit} requests to guests are under way; try'
                    ' again', code='busy')
            self._busy += 1
            if self._pool is None:   # not before the WSGI server forks
                self._pool = futures.ThreadPoolExecutor(
                    self._limit, thread_name_prefix='guest')
        return self._pool.submit(self._run, function, *arguments)

    def _run(self, function, *arguments):
        try:
            return function(*arguments)
        finally:
            with self._lock:
                self._busy -= 1
