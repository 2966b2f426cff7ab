# SPDX-License-Identifier: Apache-2.0
"""A program that gives prepared HTTP answers; it writes its port first.

``python scripted_service.py PORT ANSWERS``: JSON list of [status, object], or
null for a connection that is cut. Later requests get 200. It writes the
method of each request.
"""

import http.server
import json
import sys


class _Handler(http.server.BaseHTTPRequestHandler):

    def _answer(self):
        self.rfile.read(int(self.headers.get('Content-Length') or 0))
        print(self.command, flush=True)
        answers = self.server.answers
        answer = answers.pop(0) if answers else [200, {'made': True}]
        if answer is None:
            self.close_connection = True
            return
        raw = json.dumps(answer[1]).encode()
        self.send_response(answer[0])
        self.send_header('Content-Length', str(len(raw)))
        self.end_headers()
        self.wfile.write(raw)

    do_GET = do_PUT = do_DELETE = do_POST = _answer

    def log_message(self, *_arguments):
        """Say nothing."""


def main(port, answers):
    """Serve until killed."""
    server = http.server.HTTPServer(('127.0.0.1', int(port)), _Handler)
    server.answers = json.loads(answers)
    print(server.server_port, flush=True)
    server.serve_forever()


if __name__ == '__main__':
    main(*sys.argv[1:])
