# SPDX-License-Identifier: Apache-2.0
"""An HTTP server for the files of a folder: ADDRESS PORT FOLDER."""

import functools
import http.server
import socketserver
import sys


class Server(http.server.ThreadingHTTPServer):
    """Python's server without its DNS query, which no server answers here."""

    def server_bind(self):
        socketserver.TCPServer.server_bind(self)
        self.server_name, self.server_port = self.server_address[:2]


if __name__ == '__main__':
    address, port, folder = sys.argv[1:]
    handler = functools.partial(http.server.SimpleHTTPRequestHandler,
                                directory=folder)
    Server((address, int(port)), handler).serve_forever()
