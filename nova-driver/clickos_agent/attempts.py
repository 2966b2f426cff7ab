# SPDX-License-Identifier: Apache-2.0
"""Orders the writes to each guest (docs/adr/0034)."""

import collections
import contextlib
import threading

#: Servers and applied attempts of a server that are remembered, the newest.
_SERVERS = 10000
_APPLIED = 16


class Overtaken(Exception):
    """A later attempt, or this one, came before."""


class _Server:
    def __init__(self):
        self.turn = threading.Lock()
        self.newest = 0
        self.applied = collections.deque(maxlen=_APPLIED)


class Attempts:
    """The numbers of the attempts that came, by server."""

    def __init__(self):
        self._servers = collections.OrderedDict()
        self._lock = threading.Lock()

    @contextlib.contextmanager
    def turn(self, server_id, number):
        """Hold a server while an attempt is applied; leaving marks it so.

        :param number: of the attempt, given by clickos-api.
        :returns: context manager giving the numbers of applied attempts
        :raises Overtaken: if the number is not above all earlier ones
        """
        server = self._server(server_id)
        with server.turn:
            if number <= server.newest:
                raise Overtaken('server %s: a later write came first; this '
                                'one is not applied; try again' % server_id)
            server.newest = number
            yield server.applied
            server.applied.append(number)

    def _server(self, server_id):
        with self._lock:
            server = self._servers.setdefault(server_id, _Server())
            self._servers.move_to_end(server_id)
            if len(self._servers) > _SERVERS:
                self._servers.popitem(last=False)
            return server
