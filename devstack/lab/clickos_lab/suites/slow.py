# SPDX-License-Identifier: Apache-2.0
"""Slow clients: many connections that never finish their request."""

import http.client
import socket
import threading
import time

_HEADER = b'POST /v3/auth/tokens HTTP/1.1\r\nHost: 127.0.0.1\r\n'
#: What each kind of client begins with; then come single bytes.
_BEGINNINGS = {
    'header': _HEADER + b'X-Slow: ',
    'body': _HEADER + b'Content-Type: application/json\r\n'
                      b'Content-Length: 100000\r\n\r\n{'}
#: Between two bytes, of all clients.
_PACE_S = 1
#: New connections between two paces: the front takes 500 requests a second.
_NEW_A_ROUND = 400
#: Whose interfaces are attacked.
_SERVICES = ('keystone', 'clickos', 'tacker', 'nova', 'glance')
#: The attackers' address: each address has limits of its own.
_ATTACKER = '127.0.0.2'


class SlowClients:
    """Connections to one port of the loopback, held while in the context.

    :param kind: what arrives slowly, ``header`` or ``body``
    :param source: the address from which they come
    """

    def __init__(self, port, kind, count, source='127.0.0.1'):
        self._address = ('127.0.0.1', port)
        self._beginning = _BEGINNINGS[kind]
        self._source = source
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._keep_on)
        self._sockets = [None] * count
        self._new = _NEW_A_ROUND
        #: connections that took a byte in the last round
        self.held = 0

    def __enter__(self):
        self._round()
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._end.set()
        self._thread.join()
        for client in filter(None, self._sockets):
            client.close()

    def _keep_on(self):
        while not self._end.wait(_PACE_S):
            self._round()

    def _round(self):
        self._new = _NEW_A_ROUND
        self._sockets = [self._go_on(client) for client in self._sockets]
        self.held = sum(client is not None for client in self._sockets)

    def _go_on(self, client):
        """Send a byte, or begin again if the server has hung up."""
        try:
            if client is None and self._new == 0:
                return None
            if client is None:
                self._new -= 1
                client = socket.create_connection(
                    self._address, timeout=5,
                    source_address=(self._source, 0))
                client.sendall(self._beginning)
            else:
                client.send(b'a', socket.MSG_DONTWAIT)
            return client
        except OSError:
            if client is not None:
                client.close()
            return None


def served(port, requests):
    """Ask the root of a service; count the answers that are not errors."""
    return sum(_is_served(port) for _ in range(requests))


def _is_served(port):
    connection = http.client.HTTPConnection('127.0.0.1', port, timeout=20)
    try:
        connection.request('GET', '/')
        status = connection.getresponse().status
        return status < 500 and status != 429
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()


def attack(settings, connections, seconds, services=_SERVICES):
    """Attack each interface with each kind of client, one after another.

    :param seconds: that each attack lasts at least
    :returns: rows of (service, kind, connections held, requests, served)
    """
    rows = []
    for name in services:
        for kind in _BEGINNINGS:
            port = settings.ports[name]
            with SlowClients(port, kind, connections, _ATTACKER) as clients:
                asked = good = held = 0
                until_s = time.monotonic() + seconds
                while time.monotonic() < until_s or not asked:
                    asked += 10
                    good += served(port, 10)
                    held = max(held, clients.held)
                    # Below the limit of requests a second of one address.
                    time.sleep(0.1)
            rows.append((name, kind, held, asked, good))
    return rows
