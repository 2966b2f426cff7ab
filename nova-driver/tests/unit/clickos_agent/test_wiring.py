# SPDX-License-Identifier: Apache-2.0
"""Neutron learns which ports forward: oslo.messaging, a cosmosd double."""

from clickos_client import neutron_rpc
import cosmos_client
import oslo_messaging

from clickos_agent import ports
from clickos_agent import wiring
from tests.unit.clickos_agent import test_ports

DEVICE = '00000000-89ab-4def-8123-456789abcdef'


class Plugin:
    """Neutron's half, which believes the agent."""

    target = oslo_messaging.Target(version=neutron_rpc.VERSION)

    def __init__(self):
        self.active = set()
        self.lost = False

    def get_active_ports(self, context, host):
        return {'ports': sorted(self.active)}

    def report_ports(self, context, host, up, down):
        if not self.lost:
            self.active.update(up)
            self.active.difference_update(down)
        return {}


class WiringTest(test_ports.TestCase):

    plugin_class = Plugin

    def setUp(self):
        super().setUp()
        self.devices = set()
        self.refused = set()
        self.guest = self.cosmosd.guests[test_ports.GUEST]
        for vif in self.guest['vifs']:
            vif['mac'] = 'fa:16:3e:00:00:01'
        self.wiring = wiring.Wiring(
            cosmos_client.CosmosClient(self.cosmosd.path, 60),
            ports.Neutron(self.transport, 'compute1', 60),
            lambda: set(self.devices), lambda: self.refused)

    def look(self, times=1):
        """Return the last pause, and what Neutron calls active."""
        pauses = [self.wiring.run_once() for _ in range(times)]
        return pauses[-1], self.plugin.active

    def test_ports_of_guests_and_devices_are_active(self):
        self.devices = {DEVICE}
        self.assertEqual((None, {test_ports.PORT, test_ports.OTHER, DEVICE}),
                         self.look())

    def test_a_port_whose_rules_have_no_room_is_down(self):
        self.look()
        self.refused = {test_ports.PORT}
        self.assertEqual({test_ports.OTHER}, self.look(2)[1])
        self.refused = set()
        self.assertEqual({test_ports.PORT, test_ports.OTHER},
                         self.look()[1])

    def test_so_are_those_of_a_guest_that_hears_nothing(self):
        self.guest['state'] = 'unreachable'
        self.assertEqual((None, {test_ports.PORT, test_ports.OTHER}),
                         self.look())

    def test_a_port_without_rules_is_not_active(self):
        self.guest['vifs'][0]['filtered'] = True
        self.cosmosd.closed_looks = 1
        self.assertEqual((0.2, {test_ports.OTHER}), self.look())
        self.assertEqual((None, {test_ports.PORT, test_ports.OTHER}),
                         self.look())

    def test_so_are_those_of_a_guest_on_its_way_here(self):
        self.guest['state'] = 'arriving'
        self.guest['vifs'][0]['link'] = 'down'
        self.assertEqual((None, {test_ports.PORT, test_ports.OTHER}),
                         self.look())

    def test_one_that_stays_closed_does_not_hurry_the_agent_for_ever(self):
        self.guest['vifs'][0]['filtered'] = True
        self.cosmosd.closed_looks = 99
        self.assertEqual([0.2] * 50 + [None],
                         [self.wiring.run_once() for _ in range(51)])

    def test_neither_are_those_without_link_or_guest(self):
        self.look()
        for change, left in (
                (lambda: self.guest['vifs'][0].update(link='down'),
                 {test_ports.OTHER}),
                (lambda: self.guest.update(state='crashed'), set())):
            change()
            self.assertEqual(1, self.look()[0])
            self.assertEqual((None, left), self.look())

    def test_a_lost_report_is_repeated(self):
        self.plugin.lost = True
        self.look()
        self.assertEqual(set(), self.plugin.active)
        self.plugin.lost = False
        self.assertEqual({test_ports.PORT, test_ports.OTHER},
                         self.look()[1])

    def test_one_look_takes_no_port_from_neutron(self):
        self.look()
        guests = dict(self.cosmosd.guests)
        self.cosmosd.guests.clear()
        self.look()
        self.cosmosd.guests.update(guests)
        self.assertEqual((None, {test_ports.PORT, test_ports.OTHER}),
                         self.look())

    def test_a_bad_answer_reports_nothing(self):
        for answer in ({}, {'ports': 5}, None):
            self.plugin.get_active_ports = \
                lambda context, host, answer=answer: answer
            self.assertRaises(ports.NeutronUnavailable, self.wiring.run_once)
