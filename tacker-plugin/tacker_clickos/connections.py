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
import ipaddress
import re

import eventlet
from eventlet import greenio
from eventlet import wsgi

from tacker_clickos import chunked

#: Seconds for a head, from the last answer or the begin of the connection.
HEAD_S = 60
#: Seconds in which a client has to take a piece of an answer.
ANSWER_S = 300
#: Requests of a connection, after which it ends: a client that sends them
#: without waiting for answers then comes behind others.
MAX_REQUESTS = 100
#: Bits of an IPv6 address that a client cannot choose.
_PREFIX = 64
#: Key of an environment: gives a context in which the connection waits for its
#: client, and ends if threads run short.
WAITING = 'clickos.waiting'
#: The part of all threads that no connection without a request has.
_KEPT = 8
_CONTROL = re.compile(r'[\x00-\x08\x0a-\x1f\x7f]')
_UNPRINTABLE = re.compile(r'[\x00-\x1f\x7f-\x9f]')
#: A line as each proxy reads it, of a request that is not for a proxy.
_REQUEST = re.compile(rb"[!#$%&'*+.^_`|~0-9A-Za-z-]+ /[!-~\xa0-\xff]* "
                      rb'HTTP/1\.[01]\r\n')
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
        # Else an answer about a fault has the stack of calls.
        named.setdefault('debug', False)
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
        self._requests = 0
        self.address = _client(wsgi.addr_to_host_port(conn_state[0])[0])
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
        environ = super().get_environ()
        environ[WAITING] = functools.partial(self._waiting.entry, self,
                                             ANSWER_S)
        if environ['eventlet.input'].chunked_input:
            environ['wsgi.input'] = environ['eventlet.input'] = chunked.Body(
                environ['eventlet.input'])
        return environ

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
        is_old = self.request_version == 'HTTP/1.0'
        fault = ('a line ends without CR' if lines.is_bare
                 else _fault(self.raw_requestline, self.headers, is_old))
        if fault:
            self.send_error(400, fault)    # it ends the connection, too
            return False
        if is_old:    # its client would take "100 Continue" for the answer
            del self.headers['expect']
        self._requests += 1
        if self._requests >= MAX_REQUESTS:
            self.close_connection = True
        return True

    def log_message(self, text, *arguments):
        """Log a refused head where the server logs."""
        self.server.log.debug(text % arguments)


def _client(address):
    """Return what an address counts as, since a client may have many."""
    try:
        found = ipaddress.ip_address(address.partition('%')[0])
    except ValueError:    # of a Unix socket
        return address
    if found.version == 4:
        return address
    return str(found.ipv4_mapped or ipaddress.ip_network((found, _PREFIX),
                                                         strict=False))


def _fault(request_line, headers, is_old):
    """Return what of a head others may read otherwise, or None.

    :param is_old: whether it is of HTTP/1.0, which knows no codings
    """
    lengths, codings = (headers.get_all(name, ()) for name in (
        'content-length', 'transfer-encoding'))
    if any(isinstance(each, _NO_FIELDS) for each in headers.defects):
        return 'a line is not a field'
    if not _REQUEST.fullmatch(request_line):
        return 'the first line: expected "METHOD /PATH HTTP/1.1"'
    # The log has the addresses that a proxy gives.
    if any(map(_CONTROL.search, headers.values())) or any(
            map(_UNPRINTABLE.search, headers.get_all('x-forwarded-for', ()))):
        return 'a control character'
    if len(lengths) > 1 or not all(map(_is_number, lengths)):
        return 'Content-Length: expected one number'
    if codings and is_old:
        return 'Transfer-Encoding: not of HTTP/1.0'
    if len(codings) > 1 or any(each.strip(' \t').lower() != 'chunked'
                               for each in codings):
        return 'Transfer-Encoding: expected chunked'
    return None


def _is_number(text):
    return bool(_DIGITS.fullmatch(text.strip(' \t')))


class _Lines:
    """The lines of a head; ``is_whole`` after the empty one at its end.

    ``is_bare`` after a line that ends with LF alone.
    """

    def __init__(self, file):
        self._file = file
        self.is_whole = self.is_bare = False

    def readline(self, size=-1):
        line = self._file.readline(size)
        self.is_whole = line in (b'\r\n', b'\n')
        self.is_bare |= line.endswith(b'\n') and line[-2:] != b'\r\n'
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
