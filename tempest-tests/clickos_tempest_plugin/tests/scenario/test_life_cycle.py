# SPDX-License-Identifier: Apache-2.0
"""A VNF that heals and scales by policy."""

from clickos_client import pings
from oslo_log import log as logging
from oslo_utils import timeutils
from tempest import config
from tempest.lib import decorators

from clickos_tempest_plugin.common import waiters
from clickos_tempest_plugin.tests.scenario import case

CONF = config.CONF
LOG = logging.getLogger(__name__)

AUTOMATIC = '''
    - healing:
        type: clickos.policies.AutoHeal
        targets: [VDU1]
    - load:
        type: clickos.policies.AutoScale
        targets: [VDU1]
        properties:
          aspect: capacity
          handler: received.count
          scale_out_above: 60
          scale_in_below: 1
          cooldown: 1
'''


class AutomaticTest(case.FirewallCase):

    #: One on an idle machine; the dead guest is back by then.
    heal_begins_s = 5
    vnfd = staticmethod(lambda text: text.replace(
        '  policies:\n', '  policies:' + AUTOMATIC, 1))

    @decorators.attr(type='slow')
    @decorators.idempotent_id('4e8f1d7b-0c0e-4a7b-9f1e-0a7c5b0d2e54')
    def test_a_dead_guest_is_healed(self):
        waiters.until(lambda: self.metadata('clickosState'), bool,
                      'the watcher knows the VNF')
        ping = self.left.ping(self.right)
        died = timeutils.utcnow()
        self.host.kill_guest(self.server_id)
        waiters.until(self.heals, bool, 'the heal of the dead guest')
        waiters.until(self.task, lambda seen: seen is None, 'the heal over')
        self.assertTrue(self.left.can_ping(self.right))
        silence_s = pings.silence_s(ping.text())
        LOG.info('%.2f s from the death to the new guest', silence_s)
        self.assertLess(silence_s, self.heal_begins_s)
        self.assertEqual([self.server_id], self.servers())
        (heal,) = self.heals()
        self.assertEqual('COMPLETED', heal['operationState'])
        began = timeutils.normalize_time(
            timeutils.parse_isotime(heal['startTime']))
        waited_s = (began - died).total_seconds()
        LOG.info('A heal began %.1f s after the guest died', waited_s)
        self.assertLess(waited_s, self.heal_begins_s)

    def heals(self):
        """Return the heals of the VNF."""
        return [each for each in self.tenant.tacker.list_operations(
            self.vnf_id) if each['operation'] == 'HEAL']

    def servers(self):
        """Return the servers of the VNF."""
        info = self.tenant.tacker.show_vnf(
            self.vnf_id)['instantiatedVnfInfo']
        return [vnfc['computeResource']['resourceId']
                for vnfc in info['vnfcResourceInfo']]

    def task(self):
        """Return the name of an operation that continues, or None."""
        return next((
            each['operation'] for each in
            self.tenant.tacker.list_operations(self.vnf_id)
            if each['operationState'] in waiters.RUNNING), None)

    @decorators.attr(type='slow')
    @decorators.idempotent_id('4e8f1d7b-0c0e-4a7b-9f1e-0a7c5b0d2e55')
    def test_much_traffic_adds_a_guest_and_little_removes_it(self):
        flood = self.left.flood(self.right, 50)
        try:
            waiters.until(lambda: len(self.servers()),
                          lambda seen: seen > 1, 'a second guest',
                          CONF.clickos.lcm_timeout)
        finally:
            flood.kill()
            flood.wait()
        waiters.until(lambda: len(self.servers()), lambda seen: seen == 1,
                      'one guest again', CONF.clickos.lcm_timeout)
        waiters.until(self.task, lambda seen: seen is None, 'all over')
