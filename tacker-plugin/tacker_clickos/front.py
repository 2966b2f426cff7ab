# SPDX-License-Identifier: Apache-2.0
"""Paste filter before all others of Tacker's APIs: no connection stops them.

Tacker's server reads what a connection has until nothing is there. Requests
that come faster than it answers, as those without a token are answered, would
keep the turn of all others. It also waits for the rest of each body, and
api_filter.py sees no request that another filter has refused. What comes
before a request is bounded in connections.py.
"""

import eventlet
import webob

from tacker_clickos import api_filter
from tacker_clickos import connections


def factory(global_conf, **local_conf):
    """Return the filter, for api-paste.ini; the server begins after that."""
    connections.install()
    return Front


class Front(object):
    """Lets others have their turn, and ends the body of every request."""

    def __init__(self, application):
        self._application = application

    def __call__(self, environ, start_response):
        eventlet.sleep(0)
        try:
            return self._application(environ, start_response)
        finally:
            api_filter.end_body(webob.Request(environ))
