# SPDX-License-Identifier: Apache-2.0
"""The main job: a firewall between two networks, changed while it works."""

import json

from tempest.common import waiters as tempest_waiters
from tempest.lib import decorators
from tempest.lib import exceptions

from clickos_tempest_plugin.common import csar
from clickos_tempest_plugin.common import host
from clickos_tempest_plugin.common import traffic
from clickos_tempest_plugin.common import waiters
from clickos_tempest_plugin.tests import base

OPEN = ['allow icmp', 'allow tcp', 'deny all']
NO_HTTP = ['deny tcp dst port 80', 'allow icmp', 'allow tcp', 'deny all']
ICMP = 'allow icmp, deny all'
DOWNLOAD_BYTES = 10 * 1024 * 1024


class FirewallTest(base.OnHostTest):
    """A client on the left, a server on the right, a firewall between."""

    def setUp(self):
        super().setUp()
        self.vnf_id = self.tenant.firewall(csar.firewall(), OPEN,
                                           self.addCleanup)
        self.server_id = self.tenant.server_id(self.vnf_id)
        self.clickos = self.tenant.clickos
        self.left = self.make_endpoint('left')
        self.right = self.make_endpoint('right')

    def make_endpoint(self, network):
        """Attach a namespace to one of the tenant's networks."""
        return traffic.Endpoint(self.tenant, self.os_admin.networks_client,
                                network, self.addCleanup)

    def metadata(self, name):
        """Return an entry of the VNF's metadata, decoded.

        :param name: as Tacker 16 shows it, which writes the names of entries
            in camel case
        """
        vnf = self.tenant.tacker.show_vnf(self.vnf_id)
        return json.loads(vnf.get('metadata', {}).get(name, 'null'))

    def update(self, rules):
        """Update the rules through Tacker; return the verdict."""
        self.tenant.tacker.update_vnf(
            self.vnf_id,
            metadata={'clickos_properties': {'rules': rules}})
        return waiters.until(
            lambda: self.metadata('clickosUpdate'),
            lambda seen: seen and seen['request'] == {'rules': rules},
            f'verdict on {rules}')

    def rules(self):
        """Return the rules the guest has, one a list element."""
        text = self.clickos.read_handler(self.server_id, 'fw.config')
        return [rule.strip() for rule in text.split(',')]

    def count(self, element):
        """Return an element's packet counter."""
        return int(self.clickos.read_handler(self.vnf_id, f'{element}.count',
                                             'vnfs'))

    def hits(self, rule):
        """Return how many packets a rule has decided."""
        lines = self.clickos.read_handler(self.vnf_id, 'fw.hits', 'vnfs')
        return sum(int(line.split()[0]) for line in lines.splitlines()
                   if line.endswith(rule))

    def wait_server(self, status):
        """Wait until Nova shows the server in a state."""
        waiters.until(
            lambda: self.tenant.servers.show_server(
                self.server_id)['server']['status'],
            lambda seen: seen in status, f'server {self.server_id} {status}')

    @decorators.attr(type='smoke')
    @decorators.idempotent_id('4e8f1d7b-0c0e-4a7b-9f1e-0a7c5b0d2e01')
    def test_rule_changes_while_packets_flow(self):
        self.right.serve_http()
        self.assertTrue(self.left.can_ping(self.right))
        self.assertEqual(DOWNLOAD_BYTES,
                         self.left.download(self.right, DOWNLOAD_BYTES))
        self.assertGreater(self.count('passed'), DOWNLOAD_BYTES // 65536)
        before = self.tenant.servers.show_server(self.server_id)['server']
        ping = self.left.ping(self.right)
        verdict = self.update(NO_HTTP)
        self.assertEqual('accepted', verdict['verdict'])
        self.assertEqual(NO_HTTP, self.rules())
        self.assertEqual(NO_HTTP, self.metadata('clickosProperties')[
            'rules'])
        self.assertEqual(0, self.hits(NO_HTTP[0]))
        self.assertEqual(0, self.left.download(self.right, 1, timeout_s=3))
        self.assertGreater(self.hits(NO_HTTP[0]), 0)
        sent, received = ping.result()
        self.assertGreater(sent, 20)
        self.assertEqual(sent, received)
        after = self.tenant.servers.show_server(self.server_id)['server']
        self.assertEqual(self.server_id, self.tenant.server_id(self.vnf_id))
        for unchanged in ('OS-SRV-USG:launched_at', 'status'):
            self.assertEqual(before[unchanged], after[unchanged])
        self.assertNotEqual([], host.leftovers(self.server_id))
        self.tenant.terminate(self.vnf_id)
        self.assertNothingLeft(self.vnf_id)
        self.assertEqual([], host.leftovers(self.server_id))

    @decorators.idempotent_id('4e8f1d7b-0c0e-4a7b-9f1e-0a7c5b0d2e02')
    def test_good_bad_good_through_tacker(self):
        self.assertEqual('accepted', self.update(NO_HTTP)['verdict'])
        for bad, words in (
                (['allow nonsense'], "rule 0: 'nonsense' is not a word"),
                (['deny all'] * 65, '65 rules, 1 to 64'),
                (['allow src'], 'fw.config')):
            verdict = self.update(bad)
            self.assertEqual('refused', verdict['verdict'])
            self.assertIn(words, verdict['message'])
            self.assertEqual(
                NO_HTTP, self.metadata('clickosProperties')['rules'])
            self.assertEqual(NO_HTTP, self.rules())
        good = self.update(OPEN)
        self.assertEqual('accepted', good['verdict'])
        self.assertGreater(good['revision'], verdict['revision'])
        self.assertEqual(OPEN, self.rules())
        self.assertTrue(self.left.can_ping(self.right))

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
        self.assertFalse(self.left.can_ping(self.right))

    @decorators.idempotent_id('4e8f1d7b-0c0e-4a7b-9f1e-0a7c5b0d2e04')
    def test_killed_guest_is_noticed_and_healed_with_the_live_rule(self):
        self.clickos.write_handler(self.server_id, 'fw.config', ICMP)
        for _ in range(2):     # a healed guest must not forget it either
            host.kill_guest(self.server_id)
            self.wait_server(('ERROR', 'SHUTOFF'))
            waiters.until(
                lambda: list(self.metadata('clickosState').values()),
                lambda seen: not seen[0].startswith('ACTIVE'),
                f'VNF {self.vnf_id} shows its dead guest')
            self.assertFalse(self.left.can_ping(self.right))
            self.tenant.heal(self.vnf_id)
            self.server_id = self.tenant.server_id(self.vnf_id)
            self.assertEqual(ICMP.split(', '), self.rules())
            self.assertTrue(self.left.can_ping(self.right))
        waiters.until(lambda: list(self.metadata('clickosState').values()),
                      lambda seen: seen == ['ACTIVE'],
                      f'VNF {self.vnf_id} shows its guest')

    @decorators.idempotent_id('4e8f1d7b-0c0e-4a7b-9f1e-0a7c5b0d2e08')
    def test_a_whole_vnf_is_healed_with_the_live_rule(self):
        self.clickos.write_handler(self.server_id, 'fw.config', ICMP)
        addresses = self.tenant.addresses(self.vnf_id)
        for _ in range(2):     # a healed guest must not forget it either
            old_id = self.server_id
            self.tenant.heal_whole(self.vnf_id)
            self.server_id = self.tenant.server_id(self.vnf_id)
            self.assertNotEqual(old_id, self.server_id)
            self.assertEqual([], host.leftovers(old_id))
            self.assertEqual(ICMP.split(', '), self.rules())
            self.assertEqual(OPEN, self.metadata('clickosProperties')[
                'rules'])
            self.assertEqual(addresses, self.tenant.addresses(self.vnf_id))
            self.assertTrue(self.left.can_ping(self.right))

    @decorators.idempotent_id('4e8f1d7b-0c0e-4a7b-9f1e-0a7c5b0d2e05')
    def test_rebooted_guest_has_the_live_rule(self):
        self.clickos.write_handler(self.server_id, 'fw.config', ICMP)
        self.tenant.servers.reboot_server(self.server_id, type='HARD')
        tempest_waiters.wait_for_server_status(
            self.tenant.servers, self.server_id, 'ACTIVE')
        self.assertEqual(ICMP.split(', '), self.rules())
        self.assertTrue(self.left.can_ping(self.right))

    @decorators.idempotent_id('4e8f1d7b-0c0e-4a7b-9f1e-0a7c5b0d2e06')
    def test_cosmosd_may_die(self):
        self.clickos.write_handler(self.server_id, 'fw.config', ICMP)
        ping = self.left.ping(self.right)
        host.restart('cosmosd')
        waiters.until(self._rules_or_none, lambda seen: seen is not None,
                      'handlers after a restart of cosmosd')
        self.assertEqual(ICMP.split(', '), self.rules())
        self.assertEqual(2, self.clickos.write_handler(
            self.server_id, 'fw.config', ICMP))
        sent, received = ping.result()
        self.assertEqual(sent, received)
        self.wait_server(('ACTIVE',))

    def _rules_or_none(self):
        try:
            return self.rules()
        except (exceptions.ServerFault, exceptions.UnexpectedResponseCode,
                exceptions.Conflict):
            return None

    @decorators.attr(type='negative')
    @decorators.idempotent_id('4e8f1d7b-0c0e-4a7b-9f1e-0a7c5b0d2e07')
    def test_nobody_sends_with_anothers_mac(self):
        self.assertTrue(self.left.can_ping(self.right))
        before = self.left.counters()['dropped_spoof']
        other = self.make_endpoint('left')
        self.left.run('ip', 'link', 'set', 'dev', 'eth0', 'address',
                      other.mac)
        self.assertFalse(self.left.can_ping(self.right))
        self.assertGreater(self.left.counters()['dropped_spoof'], before)
