# SPDX-License-Identifier: Apache-2.0
"""Calls of the daemons' verbs, by the names of the contract."""

import base64

from cosmos_client.connection import Connection
from cosmos_client.error import CosmosError
from cosmos_client.events import EventStream

#: Bytes of an image in one request; a line has at most 4 MiB.
_PIECE = 1 << 20
#: What saving or restoring a guest may take, in seconds.
_LONG_S = {'save': 120, 'restore': 120}
#: Verbs that a cosmosd of before 1.0 knows by another name.
_OLD_NAMES = {'change-fence': 'change-settle',
              'migrate-begin': 'move-begin',
              'migrate-commit': 'move-settle',
              'migrate-cancel': 'move-cancel',
              'migrate-receive': 'move-receive',
              'migrate-finish': 'move-arrive'}


class Daemon:
    """Client of cosmosd or valed; any number of threads may share it.

    Every call has a connection of its own, so no call waits for another.
    """

    #: The name of the daemon in errors.
    name = 'valed'

    def __init__(self, socket_path, timeout_s=10):
        """Remember where the daemon is; nothing is connected yet.

        :param socket_path: path of the daemon's UNIX socket.
        :param timeout_s: seconds a call may take; a verb with a deadline of
            its own in the daemon gets that much on top.
        """
        self.socket_path = str(socket_path)
        self.timeout_s = timeout_s

    def call(self, verb, /, **args):
        """Ask for a verb of the contract (clickos_client/contract.json).

        :param args: the arguments of the verb, by their names there.
        :returns: the answer, a dict
        :raises: CosmosError
        """
        connection = self._connect()
        try:
            return self._ask(connection, verb, args)
        finally:
            connection.close()

    def _connect(self):
        return Connection(self.socket_path, self.timeout_s, self.name)

    def _ask(self, connection, verb, args):
        extra_s = _LONG_S.get(verb, args.get('timeout_ms', 0) / 1000)
        try:
            return connection.call(verb, args, self.timeout_s + extra_s)
        except CosmosError as e:
            if verb not in _OLD_NAMES or not _is_unknown_verb(e):
                raise
        return connection.call(_OLD_NAMES[verb], args,
                               self.timeout_s + extra_s)


class CosmosClient(Daemon):
    """Client of cosmosd, with what takes more than one call."""

    name = 'cosmosd'

    def image_add(self, sha256, size, chunks):
        """Give the host an image; one that it has is not sent again.

        :param sha256: of the image, hex digits in lower case.
        :param size: its bytes.
        :param chunks: iterable of bytes, the image in order.
        """
        offset = 0
        for piece in _pieces(chunks):
            data = base64.b64encode(piece).decode('ascii')
            if self.call('image-add', sha256=sha256, size=size,
                         offset=offset, data=data)['complete']:
                return
            offset += len(piece)
        raise CosmosError('bad-image', 'image %.12s ended after %d of %d '
                          'bytes' % (sha256, offset, size))

    def session(self):
        """:returns: a Session on this daemon, connected"""
        return Session(self.socket_path, self.timeout_s)

    def events(self):
        """Subscribe to the daemon's events.

        :returns: an EventStream, subscribed already: a ``list`` after this
            call misses nothing.
        """
        return EventStream(self._connect(), self.timeout_s)


class Session(CosmosClient):
    """A client whose calls share one connection, for one thread.

    cosmosd undoes a migration that is not over when the connection ends.
    """

    def __init__(self, socket_path, timeout_s=10):
        """Connect.

        :raises: CosmosError ``unavailable``
        """
        super().__init__(socket_path, timeout_s)
        self._connection = self._connect()

    def close(self):
        """End the session."""
        self._connection.close()

    def call(self, verb, /, **args):
        """Ask as :meth:`Daemon.call` does, over the one connection."""
        return self._ask(self._connection, verb, args)


def _is_unknown_verb(error):
    return error.code == 'bad-request' \
        and error.message.startswith('unknown verb')


def _pieces(chunks):
    """Cut or join chunks, so that each but the last has _PIECE bytes."""
    rest = b''
    for chunk in chunks:
        rest += chunk
        while len(rest) >= _PIECE:
            yield rest[:_PIECE]
            rest = rest[_PIECE:]
    if rest:
        yield rest
