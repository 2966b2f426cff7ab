# SPDX-License-Identifier: Apache-2.0
"""A killed tacker-conductor strands no VNF."""

from tempest.lib import decorators

from clickos_tempest_plugin.common import csar
from clickos_tempest_plugin.common import tenant
from clickos_tempest_plugin.common import waiters
from clickos_tempest_plugin.tests import base

RULES = ['allow icmp', 'deny all']


@decorators.serial
class ConductorTest(base.OnHostTest):

    @decorators.attr(type='slow')
    @decorators.idempotent_id('4e8f1d7b-0c0e-4a7b-9f1e-0a7c5b0d2e51')
    def test_an_instantiation_without_conductor_can_be_retried(self):
        vnf_id = self.tenant.create_vnf(
            self.tenant.onboard(csar.firewall(), self.addCleanup),
            self.addCleanup)
        self.tenant.start_vnf(vnf_id, RULES)
        waiters.until(lambda: self.tenant.leftovers(vnf_id), bool,
                      'a port or server')
        self.host.restart('tacker-conductor')
        operation = self.tenant.ended(vnf_id)
        self.assertEqual('FAILED_TEMP', operation['operationState'])
        self.assertIn('the conductor of this operation died',
                      operation['error']['detail'])
        self.assertNothingLeft(vnf_id)
        tenant.completed(self.tenant.retry(vnf_id))
        self.assertEqual(', '.join(RULES), self.tenant.clickos.read_handler(
            self.tenant.server_id(vnf_id), 'fw.config'))
