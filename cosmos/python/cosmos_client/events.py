# SPDX-License-Identifier: Apache-2.0
"""The event stream of cosmosd."""

import time

from cosmos_client.error import CosmosError


class EventStream:
    """Iterator over the daemon's events, subscribed when it is made.

    Each item is ``{'event': 'died' | 'state', 'data': {...}}``. The stream
    ends with CosmosError ``unavailable`` when the daemon goes away, and
    silently after :meth:`close`. The caller reconnects, and then asks
    ``list`` for what it missed.
    """

    def __init__(self, connection, timeout_s):
        self._connection = connection
        self._closed = False
        try:
            connection.call('events', {}, timeout_s)
        except BaseException:
            connection.close()
            raise

    def __iter__(self):
        return self

    def __next__(self):
        return self.next_event()

    def next_event(self, timeout_s=None):
        """Wait for the next event.

        :param timeout_s: seconds to wait, or None for ever.
        :returns: the event, or None when timeout_s passed without one.
        :raises: CosmosError; StopIteration after close().
        """
        deadline = None if timeout_s is None else time.monotonic() + timeout_s
        try:
            line = self._connection.read_line(deadline)
        except (CosmosError, ValueError):
            if self._closed:
                raise StopIteration
            raise
        if line is None:
            return None
        return {'event': line.get('event'), 'data': line.get('data') or {}}

    def close(self):
        """Unsubscribe; may be called from another thread, and twice."""
        self._closed = True
        self._connection.close()

    def __enter__(self):
        return self

    def __exit__(self, *exc_info):
        self.close()
