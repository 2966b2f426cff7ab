# SPDX-License-Identifier: Apache-2.0
"""Devices of Neutron's agents: a cosmosd double, interfaces in a folder."""

import pathlib

from clickos_client import neutron_rpc
import cosmos_client
import fixtures
import oslo_messaging

from clickos_agent import devices
from clickos_agent import ports
from tests.unit.clickos_agent import test_ports

PORT = '01234567-89ab-4def-8123-456789abcdef'
PLACE = ('vale0', 'd01234567-89')
DEVICE = {'port': PORT, 'switch': 'vale0', 'segment': 7,
          'mac': 'fa:16:3e:00:00:01'}


class Plugin:
    """Neutron's half, with devices that a test sets."""

    target = oslo_messaging.Target(version=neutron_rpc.VERSION)

    def __init__(self):
        self.answer = {'devices': [DEVICE]}

    def get_devices(self, context, host):
        return self.answer


class DevicesTest(test_ports.TestCase):

    plugin_class = Plugin

    def setUp(self):
        super().setUp()
        self.folder = pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        self.devices = devices.Devices(
            cosmos_client.CosmosClient(self.cosmosd.path, 60),
            ports.Neutron(self.transport, 'compute1', 60), self.folder)

    def interface(self, number):
        """Let the kernel have the device's outer end."""
        folder = self.folder / 'tap01234567-89'
        folder.mkdir(exist_ok=True)
        (folder / 'ifindex').write_text(f'{number}\n')

    def sets(self):
        return [args for verb, args in self.cosmosd.requests
                if verb == 'device-set']

    def test_a_device_is_attached_when_it_appears(self):
        self.assertEqual(0.5, self.devices.run_once())
        self.assertEqual([], self.sets())
        self.interface(9)
        for _ in range(2):
            self.assertIsNone(self.devices.run_once())
        self.assertEqual(
            [{'switch': 'vale0', 'port': PLACE[1], 'segment': 7,
              'mac': DEVICE['mac'], 'ifname': 'tap01234567-89'}],
            self.sets())

    def test_a_new_interface_and_a_new_switch_take_it_again(self):
        self.interface(9)
        self.devices.run_once()
        self.interface(10)
        self.devices.run_once()
        self.cosmosd.devices.clear()
        self.devices.run_once()
        self.assertEqual(3, len(self.sets()))

    def test_one_that_is_gone_is_detached_after_two_looks(self):
        self.interface(9)
        self.devices.run_once()
        self.plugin.answer = {'devices': []}
        self.devices.run_once()
        self.assertEqual([PLACE], list(self.cosmosd.devices))
        self.devices.run_once()
        self.assertEqual([], list(self.cosmosd.devices))

    def test_a_missing_interface_does_not_hurry_the_agent_for_ever(self):
        pauses = [self.devices.run_once() for _ in range(61)]
        self.assertEqual([0.5] * 60 + [None], pauses)

    def test_a_refusal_is_tried_again(self):
        self.interface(9)
        self.cosmosd.faults['device-set'] = ('switch', 'no such interface')
        self.devices.run_once()
        self.cosmosd.faults.clear()
        self.devices.run_once()
        self.assertEqual([PLACE], list(self.cosmosd.devices))

    def test_a_bad_answer_changes_nothing(self):
        for answer in ({}, {'devices': [{}]}, {'devices': 5}, None):
            self.plugin.answer = answer
            self.assertRaises(ports.NeutronUnavailable, self.devices.run_once)
