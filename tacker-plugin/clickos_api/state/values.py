# SPDX-License-Identifier: Apache-2.0
"""Values that guests have answered lately, for clients that take old ones."""

import collections
import threading
import time

from clickos_client import limits

#: Values that are kept, their characters in all, and those of one.
_VALUES, _CHARACTERS, _OF_VALUE = 10000, 4 * 1024 * 1024, 64 * 1024
#: Guests whose last change is remembered.
_GUESTS = 10000


class Values:
    """Values by server id and handler, with the time of the request for them.

    A value from before a change of its guest counts no longer. Each process
    has its own, so a change that another process makes does not count here.
    """

    def __init__(self):
        self._lock = threading.Lock()
        self._kept = collections.OrderedDict()
        self._characters = 0
        self._changed_s = collections.OrderedDict()

    def get(self, server_id, names, max_age_s):
        """Return {name: (value, age in seconds)} of those not too old."""
        now_s = time.monotonic()
        with self._lock:
            since_s = max(now_s - max_age_s,
                          self._changed_s.get(server_id, 0))
            kept = {name: self._kept.get((server_id, name))
                    for name in names}
        return {name: (found[0], now_s - found[1])
                for name, found in kept.items()
                if found and found[1] > since_s}

    def keep(self, server_id, values, asked_s):
        """Keep values.

        :param values: {name: value}
        :param asked_s: of time.monotonic(), before the request to the guest
        """
        with self._lock:
            for name, value in values.items():
                self._drop((server_id, name))
                if len(value) <= _OF_VALUE:
                    self._kept[server_id, name] = value, asked_s
                    self._characters += len(value)
            self._shrink(time.monotonic() - limits.MAX_AGE_S)

    def _shrink(self, since_s):
        """Drop the oldest values, if they are too old or too many."""
        while self._kept:
            key, (_, asked_s) = next(iter(self._kept.items()))
            if (asked_s > since_s and len(self._kept) <= _VALUES
                    and self._characters <= _CHARACTERS):
                return
            self._drop(key)

    def _drop(self, key):
        found = self._kept.pop(key, None)
        if found:
            self._characters -= len(found[0])

    def changed(self, server_id):
        """Note that a guest may have changed just now."""
        with self._lock:
            self._changed_s.pop(server_id, None)
            self._changed_s[server_id] = time.monotonic()
            if len(self._changed_s) > _GUESTS:
                self._changed_s.popitem(last=False)
