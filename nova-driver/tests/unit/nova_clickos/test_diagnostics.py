# SPDX-License-Identifier: Apache-2.0
"""Diagnostics of a running guest, in Nova's two forms."""

from unittest import mock

from nova.api.openstack.compute.schemas import server_diagnostics as schemas
from nova.api.openstack.compute.views import server_diagnostics as views
from nova.api.validation import validators
from nova import exception as nova_exception

from nova_clickos import diagnostics
from nova_clickos import exception
from tests.unit import cosmosd
from tests.unit.nova_clickos import base

#: See cosmosd.COUNTERS; the switch receives what the guest transmits.
NIC = {'rx_packets': 4, 'rx_octets': 8, 'rx_drop': 16 + 2048,
       'tx_packets': 1, 'tx_octets': 2,
       'tx_drop': sum((32, 64, 128, 256, 512, 1024, 8192, 32768, 262144))}


class DiagnosticsTest(base.DriverTestCase):

    def setUp(self):
        super().setUp()
        self.server = base.instance()
        self.spawn(self.server)
        guest = self.cosmosd.guests[base.UUID]
        guest.update(created_s=1000, cpu_time_ns=5_000_000)
        self.mac = guest['vifs'][0]['mac']
        patch = mock.patch.object(diagnostics.time, 'time', autospec=True,
                                  return_value=1060.9)
        patch.start()
        self.addCleanup(patch.stop)

    def test_flat(self):
        self.assertEqual(
            {'state': 'running', 'hypervisor': 'clickos-process',
             'uptime_s': 60, 'memory_mib': 8, 'cpu0_time_ns': 5_000_000,
             'vif0_mac': self.mac,
             **{f'vif0_{key}': value for key, value in NIC.items()}},
            self.driver.get_diagnostics(self.server))

    def test_versioned_is_what_novas_api_may_show(self):
        found = views.ViewBuilder().instance_diagnostics(
            self.driver.get_instance_diagnostics(self.server))
        validators._SchemaValidator(
            schemas.index_response_v248).validate(found)
        self.assertEqual('clickos-process', found['hypervisor'])
        self.assertEqual({'maximum': 8, 'used': None},
                         found['memory_details'])
        self.assertEqual((60, 'running', 1, 1, 0), tuple(
            found[name] for name in ('uptime', 'state', 'num_cpus',
                                     'num_nics', 'num_disks')))
        self.assertEqual(5_000_000, found['cpu_details'][0]['time'])
        nic, = found['nic_details']
        self.assertEqual(self.mac, nic['mac_address'])
        self.assertEqual(NIC, {key: nic[key] for key in NIC})

    def test_a_cosmosd_of_before_1_0(self):
        rogue = cosmosd.COUNTERS['dropped_rogue']
        with mock.patch.dict(cosmosd.COUNTERS, dropped_role=rogue):
            del cosmosd.COUNTERS['dropped_rogue']
            found = self.driver.get_diagnostics(self.server)
        self.assertEqual(NIC['tx_drop'], found['vif0_tx_drop'])

    def test_a_clock_that_went_back(self):
        self.cosmosd.guests[base.UUID]['created_s'] = 2000
        self.assertEqual(
            0, self.driver.get_diagnostics(self.server)['uptime_s'])

    def test_no_guest(self):
        self.cosmosd.guests.clear()
        self.assertRaises(nova_exception.InstanceNotFound,
                          self.driver.get_diagnostics, self.server)

    def test_cosmosd_away(self):
        self.cosmosd.stop()
        self.assertRaises(exception.CosmosdUnavailable,
                          self.driver.get_instance_diagnostics, self.server)
