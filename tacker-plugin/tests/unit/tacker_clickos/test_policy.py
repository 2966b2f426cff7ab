# SPDX-License-Identifier: Apache-2.0
"""Tacker's policy comes before any work of the filter."""

import inspect

from oslo_config import cfg
from tacker.api.vnflcm.v1 import controller as lifecycle
from tacker.api.vnfpkgm.v1 import controller as packages
from tacker import context as tacker_context
from tacker import policy as tacker_policy
import webob

from tacker_clickos import api_filter
from tacker_clickos import early
from tacker_clickos import owned
from tacker_clickos import policy
from tacker_clickos import routes
from tacker_clickos import vnfds
from tests.unit.tacker_clickos import base

_WRITES = ('POST', 'PUT', 'PATCH')


def writes():
    """Give (API, method, path, rule) of each route with a body."""
    for api in ('lifecycle', 'packages'):
        for path, allowed in routes.APIS[api]:
            for method in set(allowed.split()) & set(_WRITES):
                filled = path.replace('{}', base.VNF_ID)
                yield api, method, filled, policy._action(api, method, filled)


class PolicyTest(base.TestCase):

    def setUp(self):
        super().setUp()
        self.patch(cfg.ConfigOpts, '_check_required_opts')
        cfg.CONF([], default_config_files=[])
        self.addCleanup(cfg.CONF.reset)
        tacker_policy.reset()
        self.addCleanup(tacker_policy.reset)
        self.patch(owned, 'require_path')

    def send(self, api, method, path, *roles):
        """Return the status of a request that Tacker does not get."""
        request = webob.Request.blank(path, method=method, body=b'{')
        request.environ['tacker.context'] = tacker_context.Context(
            user_id='u', tenant_id='t', roles=list(roles), is_admin=False)
        return request.get_response(
            api_filter.factory({}, api=api)(self.fail)).status_int

    def test_each_route_with_a_body_has_a_rule_that_tacker_asks_for(self):
        sources = ''.join(map(inspect.getsource, (lifecycle, packages)))
        for api, method, path, action in writes():
            self.assertIn("%% '%s'" % action.rpartition(':')[2], sources)

    def test_a_reader_causes_no_work(self):
        self.patch(early, 'judge', side_effect=self.fail)
        counted = self.patch(early, 'require_few')
        self.patch(owned, 'require_vims', side_effect=self.fail)
        self.patch(vnfds, 'release', side_effect=self.fail)
        for api, method, path, _action in writes():
            with self.subTest(path):
                counted.reset_mock()
                self.assertEqual(403, self.send(api, method, path, 'reader'))
                counted.assert_not_called()
                # The body is judged: it is neither JSON nor a package.
                self.assertEqual(400, self.send(api, method, path,
                                                'member', 'reader'))

    def test_a_reader_ends_no_subscription(self):
        route = 'lifecycle', 'DELETE', '/subscriptions/' + base.VNF_ID
        self.assertEqual(403, self.send(*route, 'reader'))
        self.assertEqual(400, self.send(*route, 'member', 'reader'))
