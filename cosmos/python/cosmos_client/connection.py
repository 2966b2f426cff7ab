# SPDX-License-Identifier: Apache-2.0
"""One connection to a control socket: JSON lines of bounded length."""

import contextlib
import json
import re
import socket
import time

from cosmos_client.error import CosmosError

#: Protocol version of every line.
VERSION = 1
#: The longest line in bytes, its newline included.
MAX_LINE = 4 * 1024 * 1024
#: The most values of a line: each costs many times its bytes.
MAX_VALUES = 1 << 18
_CHUNK = 65536
#: A text, or the begin of one that does not end: any line takes one pass.
_TEXT = re.compile(rb'"(?:[^"\\]++|\\.|\\\Z)*+"?', re.DOTALL)


class Connection:
    """Sends requests and reads lines; used by one thread at a time."""

    def __init__(self, path, timeout_s, daemon='cosmosd'):
        """Connect.

        :param path: path of the UNIX socket.
        :param timeout_s: seconds to wait for the daemon to take the
            connection.
        :param daemon: its name, for errors.
        :raises: CosmosError ``unavailable`` naming path and reason.
        """
        self._path, self._daemon = path, daemon
        self._pending = bytearray()
        self._sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._sock.settimeout(timeout_s)
        try:
            self._sock.connect(path)
        except OSError as e:
            self._sock.close()
            raise self._unavailable(e)

    def close(self):
        """Close the connection; a reader in another thread wakes up."""
        with contextlib.suppress(OSError):
            self._sock.shutdown(socket.SHUT_RDWR)
        self._sock.close()

    def call(self, verb, args, timeout_s):
        """Send one request and wait for its answer.

        :param timeout_s: seconds for sending and answer together.
        :returns: the answer's ``ok`` object.
        :raises: CosmosError
        """
        deadline = time.monotonic() + timeout_s
        line = _encode(verb, args)
        try:
            self._sock.settimeout(timeout_s)
            self._sock.sendall(line)
        except TimeoutError:
            raise self._silent(verb, timeout_s)
        except OSError:
            # The daemon may have answered before it hung up (forbidden,
            # too-long): that answer says more than the broken pipe.
            pass
        answer = self.read_line(deadline)
        if answer is None:
            raise self._silent(verb, timeout_s)
        return _outcome(answer, self._daemon)

    def read_line(self, deadline=None):
        """Read one line.

        :param deadline: of time.monotonic(), or None to wait for ever.
        :returns: the decoded object, or None when the deadline has passed.
        :raises: CosmosError ``unavailable`` at the end of the stream,
            ``too-long``, ``bad-answer``.
        """
        searched = 0
        while (end := self._pending.find(b'\n', searched)) < 0:
            searched = len(self._pending)
            if searched >= MAX_LINE:
                raise CosmosError('too-long', 'a line from %s is longer '
                                  'than %d bytes' % (self._daemon, MAX_LINE))
            chunk = self._receive(deadline)
            if chunk is None:
                return None
            self._pending += chunk
        line = bytes(self._pending[:end])
        del self._pending[:end + 1]
        return _decode(line, self._daemon)

    def _receive(self, deadline):
        left = None if deadline is None else deadline - time.monotonic()
        if left is not None and left <= 0:
            return None
        try:
            self._sock.settimeout(left)
            chunk = self._sock.recv(_CHUNK)
        except TimeoutError:
            return None
        except OSError as e:
            raise self._unavailable(e)
        if not chunk:
            raise CosmosError('unavailable', '%s closed the connection on '
                              '%s' % (self._daemon, self._path))
        return chunk

    def _silent(self, verb, timeout_s):
        return CosmosError('client-timeout', '%s: no answer from %s on %s '
                           'within %g s' % (verb, self._daemon, self._path,
                                            timeout_s))

    def _unavailable(self, error):
        reason = getattr(error, 'strerror', None) or error
        return CosmosError('unavailable', '%s is not reachable on %s: %s (is '
                           'it running?)' % (self._daemon, self._path, reason))


def _encode(verb, args):
    try:
        text = json.dumps({'v': VERSION, 'id': 1, 'verb': verb, 'args': args},
                          allow_nan=False)
    except (TypeError, ValueError) as e:
        raise CosmosError('bad-request', '%s: %s' % (verb, e))
    line = text.encode('ascii') + b'\n'
    if len(line) > MAX_LINE:
        raise CosmosError('too-long', '%s: the request has %d bytes, at most '
                          '%d fit' % (verb, len(line), MAX_LINE))
    return line


def _values(line):
    bare = _TEXT.sub(b'', line)
    return 1 + sum(bare.count(mark) for mark in (b',', b'[', b'{'))


def _decode(line, daemon):
    if _values(line) > MAX_VALUES:
        raise CosmosError('bad-answer', '%s sent a line of more than %d values'
                          % (daemon, MAX_VALUES))
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        raise CosmosError('bad-answer', '%s sent a line that is not JSON'
                          % daemon)
    if not isinstance(value, dict) or value.get('v') != VERSION:
        raise CosmosError('bad-answer', '%s does not speak version %d of the '
                          'protocol' % (daemon, VERSION))
    return value


def _outcome(answer, daemon):
    error = answer.get('error')
    if isinstance(error, dict):
        raise CosmosError(str(error.get('code', 'internal')),
                          str(error.get('message', '')))
    if not isinstance(answer.get('ok'), dict):
        raise CosmosError('bad-answer', '%s answered neither ok nor error'
                          % daemon)
    return answer['ok']
