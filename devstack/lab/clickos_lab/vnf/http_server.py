# SPDX-License-Identifier: Apache-2.0
"""An HTTP server on a port, for IPv4 and IPv6.

Unlike ``python -m http.server`` it asks no name server for its own name
before it listens, and has room for many connections that wait.
"""

import http.server
import socket
import socketserver
import sys


class Server(socketserver.ThreadingTCPServer):
    address_family = socket.AF_INET6
    allow_reuse_address = True
    daemon_threads = True
    request_queue_size = 128


def main(port):
    with Server(('::', port), http.server.SimpleHTTPRequestHandler) as server:
        server.serve_forever()


if __name__ == '__main__':
    main(int(sys.argv[1]))
