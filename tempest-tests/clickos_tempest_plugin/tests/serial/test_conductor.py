# SPDX-License-Identifier: Apache-2.0
"""A killed tacker-conductor strands no VNF."""

from tempest.lib import decorators

from clickos_tempest_plugin.common import csar
from clickos_tempest_plugin.common import tenant
from clickos_tempest_plugin.common import waiters
from clickos_tempest_plugin.tests import base

RULES = ['allow icmp', 'deny all']
OTHER = ['allow tcp', 'allow icmp', 'deny all']
#: Ten times the lab's [clickos] stale_operation_timeout, since there is no
#: lock.
_DEAD_S = 180


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

    @decorators.attr(type='slow')
    @decorators.idempotent_id('4e8f1d7b-0c0e-4a7b-9f1e-0a7c5b0d2e52')
    def test_an_update_without_conductor_can_be_asked_for_again(self):
        vnf_id = self.tenant.create_vnf(
            self.tenant.onboard(csar.firewall(), self.addCleanup),
            self.addCleanup)
        tenant.completed(self.tenant.instantiate(vnf_id, RULES))
        with self.host.outage('cosmosd', 'stop', 20):
            self.update(vnf_id)
            waiters.until(lambda: self.state_of_update(vnf_id),
                          lambda state: state == 'PROCESSING',
                          'an update that waits for its guest')
            self.host.restart('tacker-conductor')
        waiters.until(lambda: self.state_of_update(vnf_id),
                      lambda state: state != 'PROCESSING',
                      'an update that is over', _DEAD_S)
        self.assertEqual('FAILED_TEMP', self.state_of_update(vnf_id))
        self.tenant.tacker.fail_operation(self.updates(vnf_id)[-1]['id'])
        self.update(vnf_id)
        waiters.until(
            lambda: self.tenant.clickos.read_handler(
                self.tenant.server_id(vnf_id), 'fw.config'),
            lambda seen: seen == ', '.join(OTHER), 'the new rules')
        waiters.until(lambda: self.state_of_update(vnf_id),
                      lambda state: state == 'COMPLETED', 'an update')
        self.tenant.terminate(vnf_id)
        self.assertNothingLeft(vnf_id)

    def update(self, vnf_id):
        self.tenant.tacker.update_vnf(vnf_id, metadata={
            'clickos_properties': {'rules': OTHER}})

    def updates(self, vnf_id):
        """Return the operations that changed a VNF, the last one at last."""
        return sorted((each for each in
                       self.tenant.tacker.list_operations(vnf_id)
                       if each['operation'] == 'MODIFY_INFO'),
                      key=lambda each: each['startTime'])

    def state_of_update(self, vnf_id):
        """Return the state of the last update, None before the first."""
        return next((each['operationState'] for each in
                     reversed(self.updates(vnf_id))), None)
