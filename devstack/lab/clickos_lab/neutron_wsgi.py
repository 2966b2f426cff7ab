# SPDX-License-Identifier: Apache-2.0
"""Neutron's API for uWSGI, with its policy loaded before the first request.

Neutron loads its policy with the first request, without a lock: a second
thread finds an enforcer that has no rules yet. Such a request is forbidden,
and a list has no rows.
"""

from neutron import policy
from neutron.wsgi import api

policy.init()
application = api.application
