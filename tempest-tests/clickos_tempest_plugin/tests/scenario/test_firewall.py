# SPDX-License-Identifier: Apache-2.0
"""The main job, and what may go wrong while a firewall works."""

import time

from clickos_client import pings
from oslo_log import log as logging
from tempest.lib.common.utils import data_utils
from tempest.lib import decorators
from tempest.lib import exceptions

from clickos_tempest_plugin.common import bounds
from clickos_tempest_plugin.common import tenant
from clickos_tempest_plugin.common import waiters
from clickos_tempest_plugin.tests.scenario import case

ICMP = 'allow icmp, deny all'
NO_HTTP, OPEN = case.NO_HTTP, case.OPEN
#: Requests that are answered after a heal before its silence is measured.
AFTER_HEAL = 5

LOG = logging.getLogger(__name__)


class FirewallTest(case.FirewallCase):

    @decorators.attr(type='smoke')
    @decorators.idempotent_id('4e8f1d7b-0c0e-4a7b-9f1e-0a7c5b0d2e01')
    def test_rule_changes_while_packets_flow(self):
        self.change_a_rule_while_packets_flow()


class SharedFirewallTest(case.Scaling, case.SharedFirewallCase):

    @decorators.attr(type='gate')
    @decorators.idempotent_id('4e8f1d7b-0c0e-4a7b-9f1e-0a7c5b0d2e09')
    def test_a_guest_comes_and_goes(self):
        self.scale('SCALE_OUT')
        first, second = self.guests()
        self.assertEqual((1, self.server_id), (self.level(), first))
        self.assertEqual('ACTIVE', self.tenant.servers.show_server(
            second)['server']['status'])
        self.assertEqual([OPEN] * 2, [self.rules_of(first),
                                      self.rules_of(second)])
        self.assertTrue(self.left.can_ping(self.right))
        self.scale('SCALE_IN')
        self.assertEqual((0, [first]), (self.level(), self.guests()))
        waiters.until(lambda: self.host.leftovers(second),
                      lambda seen: seen == [], f'server {second} gone')
        self.assertTrue(self.left.can_ping(self.right))

    @decorators.attr(type='gate')
    @decorators.idempotent_id('4e8f1d7b-0c0e-4a7b-9f1e-0a7c5b0d2e02')
    def test_good_bad_good_through_tacker(self):
        self.assertEqual('accepted', self.update(NO_HTTP)['verdict'])
        for bad, words in (
                (['allow nonsense'], "rule 0: 'nonsense' is not a word"),
                ([], '0 rules, 1 to 10000')):
            refused = self.assertRaises(exceptions.BadRequest, self.update,
                                        bad)
            self.assertIn(f'property rules: {words}', str(refused))
        verdict = self.update(['allow src'])   # only the guest knows that
        self.assertEqual('refused', verdict['verdict'])
        self.assertIn('fw.config', verdict['message'])
        self.assertEqual(NO_HTTP, self.metadata('clickosProperties')['rules'])
        self.assertEqual(NO_HTTP, self.rules())
        good = self.update(OPEN)
        self.assertEqual('accepted', good['verdict'])
        self.assertGreater(good['revision'], verdict['revision'])
        self.assertGreater(good['number'], verdict['number'])
        self.assertEqual(OPEN, self.rules())
        self.assertTrue(self.left.can_ping(self.right))

    @decorators.attr(type='slow')
    @decorators.idempotent_id('4e8f1d7b-0c0e-4a7b-9f1e-0a7c5b0d2e03')
    def test_good_bad_good_through_clickos_api(self):
        first = self.clickos.write_handler(self.server_id, 'fw.config', ICMP)
        caught = self.assertRaises(
            exceptions.BadRequest, self.clickos.write_handler,
            self.server_id, 'fw.config', 'allow src')
        self.assertIn('handler-error', str(caught))
        self.assertEqual(ICMP.split(', '), self.rules())
        self.assertEqual(first + 1, self.clickos.write_handler(
            self.server_id, 'fw.config', 'deny icmp, allow all'))
        self.assertTrue(self.left.is_cut_off(self.right))

    @decorators.attr(type='gate')
    @decorators.idempotent_id('4e8f1d7b-0c0e-4a7b-9f1e-0a7c5b0d2e04')
    def test_killed_guest_is_noticed_and_healed_with_the_live_rule(self):
        self.clickos.write_handler(self.server_id, 'fw.config', ICMP)
        for _ in range(2):     # a healed guest must not forget it either
            self.host.kill_guest(self.server_id)
            killed_s = time.monotonic()
            self.wait_server(('ERROR', 'SHUTOFF'))
            waiters.until(
                lambda: list(self.metadata('clickosState').values()),
                lambda seen: not seen[0].startswith('ACTIVE'),
                f'VNF {self.vnf_id} shows its dead guest')
            bounds.hold('max_dead_guest_shown_seconds',
                        time.monotonic() - killed_s)
            self.assertTrue(self.left.is_cut_off(self.right))
            self.tenant.heal(self.vnf_id)
            self.server_id = self.tenant.server_id(self.vnf_id)
            self.assertEqual(ICMP.split(', '), self.rules())
            self.assertTrue(self.left.can_ping(self.right))
        waiters.until(lambda: list(self.metadata('clickosState').values()),
                      lambda seen: seen == ['ACTIVE'],
                      f'VNF {self.vnf_id} shows its guest')

    @decorators.attr(type='slow')
    @decorators.idempotent_id('4e8f1d7b-0c0e-4a7b-9f1e-0a7c5b0d2e08')
    def test_a_whole_vnf_is_healed_with_the_live_rule(self):
        self.clickos.write_handler(self.server_id, 'fw.config', ICMP)
        addresses = self.tenant.addresses(self.vnf_id)
        properties = self.metadata('clickosProperties')
        self.assertIn('rules', properties)
        for _ in range(2):     # a healed guest must not forget it either
            self.host.kill_guest(self.server_id)
            self.tenant.heal_whole(self.vnf_id)
            self.assertEqual(self.server_id,
                             self.tenant.server_id(self.vnf_id))
            self.assertEqual(ICMP.split(', '), self.rules())
            self.assertEqual(properties, self.metadata('clickosProperties'))
            self.assertEqual(addresses, self.tenant.addresses(self.vnf_id))
            self.assertTrue(self.left.can_ping(self.right))

    @decorators.attr(type='gate')
    @decorators.idempotent_id('4e8f1d7b-0c0e-4a7b-9f1e-0a7c5b0d2e5a')
    def test_a_heal_of_a_running_guest_is_a_short_silence(self):
        self.clickos.write_handler(self.server_id, 'fw.config', ICMP)
        silences_s = []
        for heal in (self.tenant.heal, self.tenant.heal_whole):
            before = self.host.leftovers(self.server_id)
            ping = self.left.ping(self.right)
            heal(self.vnf_id)
            self.await_answers(ping)
            silences_s.append(pings.silence_s(ping.text()))
            self.assertEqual(self.server_id,
                             self.tenant.server_id(self.vnf_id))
            self.assertNotEqual(before,
                                self.host.leftovers(self.server_id))
            self.assertEqual(ICMP.split(', '), self.rules())
        LOG.info('Silences of heals: %s s', silences_s)
        bounds.hold('max_heal_silence_seconds', max(silences_s))

    @decorators.attr(type='slow')
    @decorators.idempotent_id('4e8f1d7b-0c0e-4a7b-9f1e-0a7c5b0d2e5b')
    def test_a_killed_guest_begins_again_in_its_server(self):
        ping = self.left.ping(self.right)
        self.host.kill_guest(self.server_id)
        self.wait_server(('SHUTOFF',))
        found_s = time.time()
        self.tenant.heal(self.vnf_id)
        self.await_answers(ping)
        back_s = next(at for at in pings.times_s(ping.text())
                      if at > found_s)
        self.assertEqual(self.server_id, self.tenant.server_id(self.vnf_id))
        LOG.info('A killed guest is back after %.2f s', back_s - found_s)

    @staticmethod
    def await_answers(ping):
        """Wait for answers to requests that ping sends from now on."""
        ping.wait(max(pings.answered(ping.text())) + AFTER_HEAL)

    @decorators.attr(type='slow')
    @decorators.idempotent_id('4e8f1d7b-0c0e-4a7b-9f1e-0a7c5b0d2e05')
    def test_rebooted_guest_has_the_live_rule(self):
        self.clickos.write_handler(self.server_id, 'fw.config', ICMP)
        self.tenant.servers.reboot_server(self.server_id, type='HARD')
        waiters.server(self.tenant.servers, self.server_id)
        self.assertEqual(ICMP.split(', '), self.rules())
        self.assertTrue(self.left.can_ping(self.right))

    @decorators.idempotent_id('4e8f1d7b-0c0e-4a7b-9f1e-0a7c5b0d2e0c')
    def test_a_stopped_router_works_again_after_a_reboot(self):
        before = self.clickos.show_desired_state(self.server_id)['writes']
        self.clickos.write_handlers(self.server_id, [
            ['fw.config', ICMP], ['passed.reset', ''], ['stop', '1']])
        self.assertTrue(self.left.is_cut_off(self.right))
        self.tenant.servers.reboot_server(self.server_id, type='HARD')
        waiters.server(self.tenant.servers, self.server_id)
        self.assertTrue(self.left.can_ping(self.right))
        kept = self.clickos.show_desired_state(self.server_id)['writes']
        self.assertEqual([*(pair for pair in before
                            if pair[0] != 'fw.config'), ['fw.config', ICMP]],
                         kept)

    @decorators.attr(type='negative')
    @decorators.idempotent_id('4e8f1d7b-0c0e-4a7b-9f1e-0a7c5b0d2e07')
    def test_nobody_sends_with_anothers_mac(self):
        thief = self.make_endpoint('left', self.addCleanup)
        self.assertTrue(thief.can_ping(self.right))
        before = thief.counters()['dropped_spoof']
        thief.run('ip', 'link', 'set', 'dev', 'eth0', 'address',
                  self.left.mac)
        self.assertTrue(thief.is_cut_off(self.right))
        self.assertGreater(thief.counters()['dropped_spoof'], before)

    @decorators.attr(type='gate')
    @decorators.idempotent_id('4e8f1d7b-0c0e-4a7b-9f1e-0a7c5b0d2e53')
    def test_another_network(self):
        self.tenant.networks['third'] = self.tenant.make_network(
            'third', '10.10.3.0/24', self.addClassResourceCleanup)
        self.addCleanup(self.tenant.networks.pop, 'third')
        self.connect('third')
        self.server_id = self.tenant.server_id(self.vnf_id)
        self.assertEqual(case.OPEN, self.rules())
        self.assertIn('10.10.3.1', self.tenant.addresses(
            self.vnf_id).values())
        caught = self.assertRaises(
            exceptions.TempestException, self.connect, 'third',
            data_utils.rand_uuid())
        self.assertIn('port VDU1-0-right', str(caught))
        self.tenant.tacker.fail_operation(
            self.tenant.last_operation(self.vnf_id))
        self.connect('right')
        self.assertTrue(self.left.can_ping(self.right))

    def connect(self, network, network_id=None):
        """Connect the connection point right with a network."""
        link = self.tenant.link('right', network)
        if network_id:
            link['resourceId'] = network_id
        tenant.completed(self.tenant.operate(
            self.vnf_id, 'change_ext_conn', extVirtualLinks=[link]))
