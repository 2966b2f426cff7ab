# SPDX-License-Identifier: Apache-2.0
"""Unit tests: nothing but this folder, cosmos_client and OpenStack."""

import http
from http import server

import eventlet.wsgi  # noqa: F401

# Neutron imports eventlet.wsgi, which leaves a server with eventlet's threads
# in the package http. A test's HTTP server needs native ones.
http.server = server
