# SPDX-License-Identifier: Apache-2.0
"""Interfaces that come and go while a guest runs."""

from nova import exception as nova_exception

from nova_clickos import exception
from tests.unit.nova_clickos import base

OTHER = '89abcdef-89ab-4def-8123-456789abcdef'


class InterfacesTest(base.DriverTestCase):

    def setUp(self):
        super().setUp()
        self.server = base.instance()
        self.spawn(self.server)
        self.cosmosd.requests.clear()

    def attach(self, port_id=OTHER, **details):
        nic = base.vif(port_id)
        nic['details'].update(details)
        self.driver.attach_interface(None, self.server, None, nic)

    def detach(self, port_id=OTHER):
        self.driver.detach_interface(None, self.server, base.vif(port_id))

    def vifs(self):
        return {vif['devid']: vif['port_id']
                for vif in self.cosmosd.guests[base.UUID]['vifs']}

    def test_the_next_device_comes_and_goes(self):
        for _ in range(2):
            self.attach()
            self.assertEqual({0: base.PORT, 1: OTHER}, self.vifs())
            self.attach()  # Nova may repeat it.
            self.assertEqual(1, self.cosmosd.verbs().count('vif-plug'))
            self.detach()
            self.detach()
            self.assertEqual({0: base.PORT}, self.vifs())
            self.cosmosd.requests.clear()
        vif = base.vif()
        self.driver.detach_interface(None, self.server, vif)
        self.assertEqual({}, self.vifs())
        self.attach()
        self.assertEqual({0: OTHER}, self.vifs())

    def test_its_tag_is_in_the_metadata_of_the_server(self):
        self.virtual_interfaces.return_value = [
            base.tagged('right', OTHER, 'fa:16:3e:00:00:02')]
        self.attach()
        device, = self.server.device_metadata.devices
        self.assertEqual(('fa:16:3e:00:00:02', ['right']),
                         (device.mac, device.tags))

    def test_it_waits_for_the_rules(self):
        self.cosmosd.closed_looks = 2
        self.attach(vale_filtered=True)
        self.assertEqual(3, self.cosmosd.verbs().count('vif-list'))

    def test_a_server_that_is_off_has_it_at_its_start(self):
        self.cosmosd.crash(base.UUID, 'why')
        for _ in range(2):
            self.attach()
            self.detach()
            self.driver.destroy(None, self.server, None)
        self.assertNotIn('vif-plug', self.cosmosd.verbs())

    def test_a_refusal_names_the_port(self):
        self.cosmosd.faults['vif-plug'] = ('too-many', 'at most 16')
        error = self.assertRaises(exception.CosmosdRefused, self.attach)
        self.assertIn(OTHER, error.format_message())
        self.assertIsInstance(error, nova_exception.NovaException)
        self.cosmosd.faults['vif-unplug'] = ('dead-guest', 'is paused')
        error = self.assertRaises(exception.CosmosdRefused, self.detach,
                                  base.PORT)
        self.assertIn('is paused', error.format_message())

    def test_a_xen_host_says_that_it_can(self):
        self.cosmosd.host_kind = 'xen'
        self.driver.init_host('compute1')
        self.assertTrue(self.driver.capabilities['supports_attach_interface'])
