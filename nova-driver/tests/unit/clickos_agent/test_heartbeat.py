# SPDX-License-Identifier: Apache-2.0
"""Reports to Neutron: at once, again after a failure, and again later."""

import threading

from clickos_client import neutron_rpc
import cosmos_client
import oslo_messaging

from clickos_agent import heartbeat
from clickos_agent import load
from clickos_agent import ports
from tests.unit.clickos_agent import test_ports

#: More than enough for a report on a busy machine.
_PATIENCE_S = 30
LINKS = {'tunnel_ip': '192.0.2.1', 'interfaces': {'physnet1': 'eth1'}}


class Plugin:
    """Neutron's half; it refuses as many reports as a test wants."""

    target = oslo_messaging.Target(version=neutron_rpc.VERSION)

    def __init__(self, refused=0):
        self.reports = []
        self.loads = []
        self._refused = refused
        self.enough = threading.Semaphore(0)

    def report_state(self, context, host, start, links, load):
        self.reports.append((host, start))
        self.loads.append(load)
        self.links = links
        self.enough.release()
        return {'error': 'no'} if len(self.reports) <= self._refused else {}


class HeartbeatTest(test_ports.TestCase):

    def beat(self, plugin, count):
        """Return the first reports to a Neutron."""
        self.serve('heartbeats', plugin, 'neutron')
        neutron = ports.Neutron(self.transport, 'compute1', 60)
        neutron._client = neutron._client.prepare(topic='heartbeats')
        for vif in self.cosmosd.guests[test_ports.GUEST]['vifs']:
            vif['mac'] = 'fa:16:3e:00:00:01'
        beating = heartbeat.Heartbeat(
            neutron, 0.01, LINKS, load.Load(
                cosmos_client.CosmosClient(self.cosmosd.path, 60)),
            heartbeat.installed(
                cosmos_client.CosmosClient(self.cosmosd.path, 60)))
        beating.start()
        self.addCleanup(beating.wait)
        self.addCleanup(beating.stop)
        for _ in range(count):
            self.assertTrue(plugin.enough.acquire(timeout=_PATIENCE_S))
        return plugin.reports[:count]

    def test_the_first_report_says_start(self):
        self.assertEqual(
            [('compute1', True), ('compute1', False), ('compute1', False)],
            self.beat(Plugin(), 3))

    def test_a_report_says_how_others_are_reached_and_what_runs_here(self):
        plugin = Plugin()
        self.beat(plugin, 1)
        self.assertEqual(LINKS, {key: plugin.links[key] for key in LINKS})
        host = cosmos_client.CosmosClient(self.cosmosd.path, 60).call('host')
        self.assertEqual(
            (host['version'], host['host_kind'], host['engine_sha256']),
            tuple(plugin.links[key]
                  for key in ('cosmosd', 'host_kind', 'engine_sha256')))

    def test_without_cosmosd_it_does_not_say_what_runs(self):
        client = cosmos_client.CosmosClient('/nonexistent', 1)
        self.assertEqual({}, heartbeat.installed(client)())

    def test_a_later_report_says_what_the_switch_moves(self):
        plugin = Plugin()
        self.beat(plugin, 2)
        self.assertEqual(
            [None, {'packets_per_s': 0, 'dropped_per_s': 0}],
            plugin.loads[:2])

    def test_a_refused_report_is_made_again(self):
        self.assertEqual(
            [('compute1', True), ('compute1', True), ('compute1', False)],
            self.beat(Plugin(refused=1), 3))
