# SPDX-License-Identifier: Apache-2.0
"""Ports follow Neutron: over oslo.messaging, to a cosmosd double."""

import threading
import time

from clickos_client import neutron_rpc
import cosmos_client
import fixtures
from oslo_config import cfg
import oslo_messaging
from oslo_messaging import conffixture
import testtools

from clickos_agent import conf
from clickos_agent import ports
from tests.unit import cosmosd

GUEST = '11111111-2222-4333-8444-555555555555'
PORT = '01234567-89ab-4def-8123-456789abcdef'
OTHER = '89abcdef-89ab-4def-8123-456789abcdef'


def vif(devid, port_id, link='up'):
    return {'devid': devid, 'port': 'p', 'port_id': port_id, 'link': link}


class Plugin:
    """Neutron's half, with states that a test sets."""

    target = oslo_messaging.Target(version=neutron_rpc.VERSION)

    def __init__(self):
        self.states = {}
        self.answer = None
        self.asked = []

    def get_port_states(self, context, host, ports):
        self.asked.append((host, ports))
        return self.answer or {'states': {
            port: self.states.get(port, neutron_rpc.UP) for port, _ in ports}}


class TestCase(testtools.TestCase):

    #: Neutron's half, whose answers a test sets
    plugin_class = Plugin

    def setUp(self):
        super().setUp()
        self.useFixture(fixtures.FakeLogger())
        self.cosmosd = self.useFixture(cosmosd.FakeCosmosd())
        self.cosmosd.guests[GUEST] = {
            'uuid': GUEST, 'domid': 5, 'state': 'running',
            'vifs': [vif(0, PORT), vif(1, OTHER)]}
        self.conf = cfg.ConfigOpts()
        conf.register_opts(self.conf)
        self.useFixture(conffixture.ConfFixture(self.conf)).transport_url = \
            'fake:/'
        self.conf([])
        self.transport = oslo_messaging.get_rpc_transport(self.conf)
        self.plugin = self.plugin_class()
        self.server = self.serve(neutron_rpc.PLUGIN, self.plugin, 'neutron')
        self.reconciler = ports.Reconciler(
            cosmos_client.CosmosClient(self.cosmosd.path, 60),
            ports.Neutron(self.transport, 'compute1', 1), 10, self.hint)
        self.hints = 0

    def hint(self):
        self.hints += 1

    def serve(self, topic, endpoint, name):
        server = oslo_messaging.get_rpc_server(
            self.transport,
            oslo_messaging.Target(exchange=neutron_rpc.EXCHANGE, topic=topic,
                                  server=name), [endpoint],
            access_policy=oslo_messaging.DefaultRPCAccessPolicy)
        server.start()
        self.addCleanup(server.wait)
        self.addCleanup(server.stop)
        return server

    def orders(self):
        """Return the orders to cosmosd since the last call."""
        told = [request for request in self.cosmosd.requests
                if request[0].startswith('vif-')]
        self.cosmosd.requests.clear()
        return told

    REMOVAL = ('vif-remove', {'uuid': GUEST, 'devid': 0, 'domid': 5})


class LookTest(TestCase):

    def test_nothing_wrong(self):
        for _ in range(3):
            self.reconciler.look_at_all()
        self.assertEqual([], self.orders())
        self.assertEqual(('compute1', [[PORT, GUEST], [OTHER, GUEST]]),
                         self.plugin.asked[0])

    def test_a_lost_message_takes_two_looks(self):
        self.plugin.states[PORT] = neutron_rpc.ABSENT
        self.reconciler.look_at_all()
        self.assertEqual(([], 0), (self.orders(), self.hints))
        self.reconciler.look_at_all()
        self.assertEqual(([self.REMOVAL], 1), (self.orders(), self.hints))
        self.reconciler.look_at_all()
        self.assertEqual(([], 1), (self.orders(), self.hints))

    def test_a_port_that_was_just_bound_is_left_alone(self):
        for state in 2 * (neutron_rpc.ABSENT, neutron_rpc.UP):
            self.plugin.states[PORT] = state
            self.reconciler.look_at_all()
        self.assertEqual([], self.orders())

    def test_another_start_of_the_guest_is_another_port(self):
        self.plugin.states[PORT] = neutron_rpc.ABSENT
        self.reconciler.look_at_all()
        self.cosmosd.guests[GUEST]['domid'] = 6
        self.reconciler.look_at_all()
        self.assertEqual([], self.orders())

    def test_a_hint_takes_one_look_at_its_port(self):
        self.plugin.states = dict.fromkeys((PORT, OTHER), neutron_rpc.ABSENT)
        self.reconciler.look_at_hinted({PORT})
        self.assertEqual([self.REMOVAL], self.orders())

    def test_a_hint_is_not_believed(self):
        self.reconciler.look_at_hinted({PORT})
        self.assertEqual([], self.orders())

    def test_links(self):
        self.plugin.states[PORT] = neutron_rpc.DOWN
        self.reconciler.look_at_hinted({PORT})
        args = {'uuid': GUEST, 'devid': 0, 'domid': 5, 'link_up': False}
        self.assertEqual([('vif-set', args)], self.orders())
        self.plugin.states[PORT] = neutron_rpc.UP
        self.reconciler.look_at_hinted({PORT})
        self.assertEqual([('vif-set', dict(args, link_up=True))],
                         self.orders())

    def test_ports_not_made_for_neutron_are_not_asked_for(self):
        others = vif(0, None), {'devid': 1, 'port': 'p01234567-89',
                                'link': 'up'}, vif(2, PORT, 'removed')
        self.cosmosd.guests[GUEST]['vifs'] = list(others)
        for _ in range(2):
            self.reconciler.look_at_all()
        self.assertEqual(([], []), (self.plugin.asked, self.orders()))

    def test_a_removal_that_failed_is_tried_again(self):
        self.plugin.states[PORT] = neutron_rpc.ABSENT
        self.cosmosd.faults['vif-remove'] = ('switch', 'valed is away')
        self.reconciler.look_at_hinted({PORT})
        self.cosmosd.faults.clear()
        self.orders()
        for _ in range(2):
            self.reconciler.look_at_all()
        self.assertEqual([self.REMOVAL], self.orders())

    def test_a_thousand_guests_are_asked_for_in_bounded_calls(self):
        for n in range(1000):
            uuid = '00000000-0000-4000-8000-%012x' % n
            self.cosmosd.guests[uuid] = {
                'uuid': uuid, 'domid': n, 'state': 'running',
                'vifs': [vif(0, uuid)]}
        self.reconciler.look_at_all()
        self.assertEqual([500, 500, 2],
                         [len(asked) for _, asked in self.plugin.asked])


class TroubleTest(TestCase):

    def test_neutron_is_away(self):
        self.server.stop()
        for _ in range(2):
            self.assertRaises(ports.NeutronUnavailable,
                              self.reconciler.look_at_all)
        self.assertEqual([], self.orders())

    def test_an_answer_that_is_no_answer_changes_nothing(self):
        for answer in ({'error': 'host: expected'}, {'states': None}, [1],
                       {'states': {PORT: 'gone'}}, {'states': {PORT: []}},
                       {'states': {}}):
            self.plugin.answer = answer
            for _ in range(2):
                try:
                    self.reconciler.look_at_all()
                except ports.NeutronUnavailable:
                    pass
            self.assertEqual([], self.orders())

    def test_a_look_without_answer_ends_suspicion(self):
        self.plugin.states[PORT] = neutron_rpc.ABSENT
        self.reconciler.look_at_all()
        self.plugin.answer = {'error': 'busy'}
        self.assertRaises(ports.NeutronUnavailable,
                          self.reconciler.look_at_all)
        self.plugin.answer = None
        self.reconciler.look_at_all()
        self.assertEqual([], self.orders())


class HintsTest(TestCase):

    def hint(self, port_ids):
        client = oslo_messaging.get_rpc_client(
            self.transport, oslo_messaging.Target(
                exchange=neutron_rpc.EXCHANGE, topic=neutron_rpc.AGENT,
                version=neutron_rpc.VERSION))
        client.prepare(server='compute1').cast({}, 'ports_changed',
                                               port_ids=port_ids)

    def test_a_hint_unplugs_at_once(self):
        removed = threading.Event()
        self.useFixture(fixtures.MonkeyPatch(
            'tests.unit.cosmosd.FakeCosmosd._do_vif_remove',
            lambda *args, **kwargs: removed.set() or {}))
        # No look of its own comes in the time of this test.
        self.reconciler = ports.Reconciler(
            cosmos_client.CosmosClient(self.cosmosd.path, 60),
            ports.Neutron(self.transport, 'compute1', 60), 3600, self.hint)
        hints = ports.Hints(self.reconciler, *[None] * 4)
        self.serve(neutron_rpc.AGENT, hints, 'compute1')
        self.reconciler.start()
        self.addCleanup(self.reconciler.wait)
        self.addCleanup(self.reconciler.stop)
        self.plugin.states[PORT] = neutron_rpc.ABSENT
        self.hint([PORT])
        self.assertTrue(removed.wait(60))

    def test_a_lost_hint_costs_less_than_30_s(self):
        """With the interval that the agent has by default."""
        removed = threading.Event()
        self.useFixture(fixtures.MonkeyPatch(
            'tests.unit.cosmosd.FakeCosmosd._do_vif_remove',
            lambda *args, **kwargs: removed.set() or {}))
        self.assertEqual(10, self.conf.clickos_agent.port_resync_interval)
        self.reconciler.start()
        self.addCleanup(self.reconciler.wait)
        self.addCleanup(self.reconciler.stop)
        while not self.plugin.asked:  # the change comes after a look
            time.sleep(0.05)
        self.plugin.states[PORT] = neutron_rpc.ABSENT
        self.assertTrue(removed.wait(30))

    def test_a_bad_hint_is_dropped(self):
        hints = ports.Hints(self.reconciler, *[None] * 4)
        for bad in (None, 'x', ['x'], [7], [PORT] * 501, {}, [None]):
            hints.ports_changed({}, port_ids=bad)
        self.assertEqual(set(), self.reconciler._hinted)
