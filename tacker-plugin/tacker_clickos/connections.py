# SPDX-License-Identifier: Apache-2.0
"""Bounds what a connection holds of Tacker's APIs without a request.

Tacker's server gives each connection one of 1,000 threads, and waits for its
client without end: for a head that does not come, before a token can be
asked, and for one that reads no answer. So such a connection ends after a
time, and earlier if threads run short. A head that a proxy in front may take
for another one, or that would write lines of its own into the log, is no
request.
"""

import contextlib
from email import errors
import functools
import re

import eventlet
from eventlet import greenio
from eventlet import wsgi

#: Seconds for a head, from the last answer or the begin of the connection.
HEAD_S = 60
#: Seconds in which a client has to take a piece of an answer.
ANSWER_S = 300
#: Key of an environment: gives a context in which the connection waits for its
#: client, and ends if threads run short.
WAITING = 'clickos.waiting'
#: The part of all threads that no connection without a request has.
_KEPT = 8
_CONTROL = re.compile(r'[\x00-\x08\x0a-\x1f\x7f]')
_UNPRINTABLE = re.compile(r'[\x00-\x1f\x7f-\x9f]')
_DIGITS = re.compile(r'[0-9]{1,18}')
#: Lines after which the parser takes the rest of a head for a body, or skips.
_NO_FIELDS = (errors.FirstHeaderLineIsContinuationDefect, errors.HeaderDefect,
              errors.MisplacedEnvelopeHeaderDefect,
              errors.MissingHeaderBodySeparatorDefect)


def install():
    """Bound the connections of this process's servers; may be called twice.

    Tacker's server has no option for it.
    """
    if not hasattr(wsgi.server, 'is_bounded'):
        wsgi.server = _bounded(wsgi.server)


def _bounded(serve):
    @functools.wraps(serve)
    def bounded(*arguments, custom_pool=None, max_size=None, **named):
        pool = eventlet.GreenPool(
            max_size or wsgi.DEFAULT_MAX_SIMULTANEOUS_REQUESTS
        ) if custom_pool is None else custom_pool
        named.setdefault('protocol',
                         functools.partial(Protocol, Waiting(pool)))
        return serve(*arguments, custom_pool=_Threads(pool), **named)
    bounded.is_bounded = True
    return bounded


class _Threads:
    """The threads of a server, which may have one of them itself.

    eventlet's pool lets a thread of its own do what finds no other thread.
    Tacker's server accepted no connection then before that one ended.
    """

    def __init__(self, pool):
        self._pool = pool

    def spawn(self, *arguments):
        with self._pool.sem:    # it waits until a thread is free
            pass
        return self._pool.spawn(*arguments)

    def waitall(self):
        return self._pool.waitall()


class Waiting:
    """The connections of a server that wait for their clients.

    :param pool: the server's threads
    """

    def __init__(self, pool):
        self._pool = pool
        #: By address, in the order in which they began to wait.
        self._waiting = {}
        self._ending = set()

    @contextlib.contextmanager
    def entry(self, connection, most_s):
        """Let a connection wait, or end it after a time.

        If few threads are free, the one ends that waits the longest at the
        address with the most.
        """
        timer = eventlet.spawn_after(most_s, self._end, connection)
        self._waiting.setdefault(connection.address, {})[connection] = None
        self._make_room(connection)
        try:
            yield
        finally:
            timer.cancel()
            self._remove(connection)

    def is_ending(self, connection):
        """Return whether a connection was ended, and its client is gone."""
        return connection in self._ending

    def is_over(self, connection):
        """Note that the thread of a connection is free."""
        self._ending.discard(connection)

    def _make_room(self, newest):
        free = self._pool.free() + len(self._ending)
        if free < self._pool.size // _KEPT:
            first = next(iter(max(self._waiting.values(), key=len)))
            if first is not newest:
                self._end(first)

    def _remove(self, connection):
        """Note that a connection waits no longer; may be called twice."""
        same = self._waiting.get(connection.address, {})
        same.pop(connection, None)
        if not same:
            self._waiting.pop(connection.address, None)

    def _end(self, connection):
        self._remove(connection)
        self._ending.add(connection)
        connection.end()


class Protocol(wsgi.HttpProtocol):
    """A connection of eventlet's server that does not wait without end.

    :param waiting: of its server
    """

    def __init__(self, waiting, conn_state, server):
        self._waiting = waiting
        self._head = contextlib.ExitStack()
        self.address = wsgi.addr_to_host_port(conn_state[0])[0]
        try:
            super().__init__(conn_state, server)
        finally:
            waiting.is_over(self)

    def end(self):
        """End the connection; what waits for the client sees its end."""
        greenio.shutdown_safe(self.connection)

    def setup(self):
        """Bound the waits for clients that read no answer."""
        super().setup()
        self.wfile = _Answer(self.wfile, functools.partial(
            self._waiting.entry, self, ANSWER_S))

    def get_environ(self):
        """Give filters the means to wait for the client."""
        return {**super().get_environ(), WAITING: functools.partial(
            self._waiting.entry, self, ANSWER_S)}

    def handle_one_request(self):
        """Bound the wait for the head."""
        with contextlib.ExitStack() as self._head:
            self._head.enter_context(self._waiting.entry(self, HEAD_S))
            super().handle_one_request()

    def parse_request(self):
        """Read the rest of a head.

        :returns: whether it is a request; if not, the connection ends
        """
        self.rfile = lines = _Lines(self.rfile)
        found = super().parse_request()
        self._head.close()
        if not (found and lines.is_whole) or self._waiting.is_ending(self):
            self.close_connection = True
            return False
        fault = _fault(self.requestline, self.headers)
        if fault:
            self.send_error(400, fault)    # it ends the connection, too
        return not fault

    def log_message(self, text, *arguments):
        """Log a refused head where the server logs."""
        self.server.log.debug(text % arguments)


def _fault(request_line, headers):
    """Return what of a head others may read otherwise, or None."""
    lengths, codings = (headers.get_all(name, ()) for name in (
        'content-length', 'transfer-encoding'))
    if any(isinstance(each, _NO_FIELDS) for each in headers.defects):
        return 'a line is not a field'
    if _UNPRINTABLE.search(request_line) or any(
            _CONTROL.search(value) for value in headers.values()):
        return 'a control character'
    if len(lengths) > 1 or not all(map(_is_number, lengths)):
        return 'Content-Length: expected one number'
    if len(codings) > 1 or any(each.strip(' \t').lower() != 'chunked'
                               for each in codings):
        return 'Transfer-Encoding: expected chunked'
    return None


def _is_number(text):
    return bool(_DIGITS.fullmatch(text.strip(' \t')))


class _Lines:
    """The lines of a head; ``is_whole`` after the empty one at its end."""

    def __init__(self, file):
        self._file = file
        self.is_whole = False

    def readline(self, size=-1):
        line = self._file.readline(size)
        self.is_whole = line in (b'\r\n', b'\n')
        return line


class _Answer:
    """A file to a client, for which a write waits as long as it may."""

    def __init__(self, file, waiting):
        self._file = file
        self._waiting = waiting

    def __getattr__(self, name):
        return getattr(self._file, name)

    def write(self, data):
        with self._waiting():
            return self._file.write(data)

    def writelines(self, lines):
        with self._waiting():
            return self._file.writelines(lines)

    def flush(self):
        with self._waiting():
            return self._file.flush()
