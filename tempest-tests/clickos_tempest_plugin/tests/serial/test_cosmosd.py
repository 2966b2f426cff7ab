# SPDX-License-Identifier: Apache-2.0
"""The toolstack of a host restarts while a firewall works."""

from tempest.lib import decorators
from tempest.lib import exceptions

from clickos_tempest_plugin.common import waiters
from clickos_tempest_plugin.tests.scenario import case

RULES = 'allow icmp, deny all'


@decorators.serial
class CosmosdTest(case.SharedFirewallCase):

    @decorators.idempotent_id('4e8f1d7b-0c0e-4a7b-9f1e-0a7c5b0d2e06')
    def test_cosmosd_may_die(self):
        revision = self.clickos.write_handler(self.server_id, 'fw.config',
                                              RULES)
        ping = self.left.ping(self.right)
        self.host.restart('cosmosd')
        waiters.until(self._rules_or_none, lambda seen: seen is not None,
                      'handlers after a restart of cosmosd')
        self.assertEqual(RULES.split(', '), self.rules())
        self.assertEqual(revision + 1, self.clickos.write_handler(
            self.server_id, 'fw.config', RULES))
        self.assertEqual((), ping.result().lost)
        self.wait_server(('ACTIVE',))

    def _rules_or_none(self):
        try:
            return self.rules()
        except (exceptions.ServerFault, exceptions.UnexpectedResponseCode,
                exceptions.Conflict):
            return None
