# SPDX-License-Identifier: Apache-2.0
"""Bodies of Tacker's APIs that come in chunks.

Tacker's server reads a line between chunks of any length into memory, takes
sizes with a sign, "0x" or "_", skips what follows the data of a chunk, and
reads trailers without end. A proxy in front may find another request there,
and none of it lets other connections have their turn.
"""

import re

import eventlet
from eventlet import wsgi

#: Bytes of a line between chunks, and of all trailers of a body.
MAX_LINE = 8192
_SIZE = re.compile(rb'([0-9a-fA-F]{1,8})[ \t]*(?:;[\t -~\x80-\xff]*)?\r\n')


class Body(wsgi.Input):
    """A body of which nothing more is read after the first fault.

    :param source: the one that eventlet made of the same request
    """

    def __init__(self, source):
        super().__init__(source.rfile, None, source.get_socket(),
                         source.wfile, source.wfile_line, chunked_input=True)
        #: Bytes of this chunk that were not read yet.
        self._left = 0
        self._is_over = False
        self._fault = None

    def _chunked_read(self, rfile, length=None, use_readline=False):
        """Read up to a number of bytes, or to the end of a line.

        :raises: ChunkReadError, also at each later call
        """
        if self.should_send_hundred_continue:
            self.send_hundred_continue_response()
            self.is_hundred_continue_response_sent = True
        most = float('inf') if length is None or length < 0 else length
        read = self.rfile.readline if use_readline else self.rfile.read
        pieces = []
        while most and (self._left or self._begin()):
            pieces.append(read(min(self._left, most)))
            most -= len(pieces[-1])
            self._take(len(pieces[-1]))
            if use_readline and pieces[-1].endswith(b'\n'):
                break
        return b''.join(pieces)

    def _begin(self):
        """Read to the data of the next chunk; return whether there is one."""
        if self._fault:
            raise wsgi.ChunkReadError(self._fault)
        if self._is_over:
            return False
        eventlet.sleep(0)
        found = _SIZE.fullmatch(self.rfile.readline(MAX_LINE))
        self._require(found, 'chunk: expected its size in a line of at most '
                      '%d bytes' % MAX_LINE)
        self._left = int(found[1], 16)
        if not self._left:
            self._take_trailers()
            self._is_over = True
        return not self._is_over

    def _take(self, size):
        """Note that bytes of a chunk were read, and read what ends it."""
        if not size:
            self._left = 0
            self._fault = 'the body ended in a chunk'
            raise OSError(self._fault)
        self._left -= size
        if not self._left:
            self._require(self.rfile.read(2) == b'\r\n',
                          'chunk: longer than its size')

    def _take_trailers(self):
        left = MAX_LINE
        while (line := self.rfile.readline(left)) != b'\r\n':
            self._require(line.endswith(b'\r\n'), 'trailers: expected lines '
                          'of together at most %d bytes' % MAX_LINE)
            left -= len(line)

    def _require(self, is_so, fault):
        if not is_so:
            self._left, self._fault = 0, fault
            raise wsgi.ChunkReadError(fault)
