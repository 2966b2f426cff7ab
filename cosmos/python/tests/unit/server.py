# SPDX-License-Identifier: Apache-2.0
"""A real UNIX socket server that answers as a test tells it to."""

import json
import os
import socket
import tempfile
import threading


class Server:
    """Accepts connections; `serve(file, request)` handles each request.

    `serve` returns an object to send, bytes to send as they are, or None to
    hang up.
    """

    def __init__(self, serve):
        self._serve = serve
        self._dir = tempfile.TemporaryDirectory()
        self.path = os.path.join(self._dir.name, 'cosmosd.sock')
        self.requests = []
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._listener.bind(self.path)
        self._listener.listen(64)
        self._threads = [threading.Thread(target=self._accept)]
        self._threads[0].start()

    def close(self):
        self._listener.shutdown(socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join(60)
        self._listener.close()
        self._dir.cleanup()

    def _accept(self):
        while True:
            try:
                conn, _ = self._listener.accept()
            except OSError:
                return
            thread = threading.Thread(target=self._talk, args=(conn,))
            self._threads.append(thread)
            thread.start()

    def _talk(self, conn):
        try:
            with conn, conn.makefile('rwb') as file:
                self._answer_all(file)
        except (BrokenPipeError, ConnectionResetError):
            pass  # the client under test gave up, as some tests want

    def _answer_all(self, file):
        for line in file:
            request = json.loads(line)
            self.requests.append(request)
            answer = self._serve(file, request)
            if answer is None:
                return
            if not isinstance(answer, bytes):
                answer = json.dumps(answer).encode() + b'\n'
            file.write(answer)
            file.flush()


def ok(**values):
    return {'v': 1, 'id': 1, 'ok': values}


def error(code, message):
    return {'v': 1, 'id': 1, 'error': {'code': code, 'message': message}}
