# SPDX-License-Identifier: Apache-2.0
"""Whose turn it is to look whether the change of a state is over.

Each look is a transaction. So only one thread of a process looks at a state,
and it looks as soon as a change of this process ends.
"""

import contextlib
import threading


class Turns:
    """Turns of threads, by key; a key without threads takes no memory."""

    def __init__(self):
        self._changed = threading.Condition()
        self._taken = set()
        #: how many changes of this process have ended
        self.ended = 0

    @contextlib.contextmanager
    def of(self, key, timeout_s):
        """Wait for the turn of a key; tell in the context if it came."""
        with self._changed:
            has_turn = self._changed.wait_for(
                lambda: key not in self._taken, timeout_s)
            if has_turn:
                self._taken.add(key)
        try:
            yield has_turn
        finally:
            if has_turn:
                with self._changed:
                    self._taken.discard(key)
                    self._changed.notify_all()

    def end(self):
        """Note that a change has ended."""
        with self._changed:
            self.ended += 1
            self._changed.notify_all()

    def wait(self, seen, timeout_s):
        """Wait until a change ends.

        :param seen: of ended, before the last look
        """
        with self._changed:
            self._changed.wait_for(lambda: self.ended != seen, timeout_s)
