# SPDX-License-Identifier: Apache-2.0
"""The load of the switch: counters of a cosmosd double, twice."""

from unittest import mock

import cosmos_client

from clickos_agent import load
from tests.unit.clickos_agent import test_ports
from tests.unit import cosmosd


class LoadTest(test_ports.TestCase):

    def setUp(self):
        super().setUp()
        self.guest = self.cosmosd.guests[test_ports.GUEST]
        for vif in self.guest['vifs']:
            vif['mac'] = 'fa:16:3e:00:00:01'
        self.load = load.Load(
            cosmos_client.CosmosClient(self.cosmosd.path, 60))

    def measure(self, at_s, **counters):
        """Measure at a time, with some counters of each port changed."""
        with mock.patch.object(load.time, 'monotonic', autospec=True,
                               return_value=at_s), \
                mock.patch.dict(cosmosd.COUNTERS, counters):
            return self.load.measure()

    def test_both_directions_of_all_ports_count(self):
        self.assertIsNone(self.measure(10, rx_packets=5, tx_packets=0,
                                       dropped_spoof=1, dropped_full=0))
        self.assertEqual(
            {'packets_per_s': 2 * (20 + 5), 'dropped_per_s': 2 * (2 + 1)},
            self.measure(12, rx_packets=45, tx_packets=10, dropped_spoof=5,
                         dropped_full=2))

    def test_ports_that_are_new_or_start_again_count_later(self):
        self.measure(10, rx_packets=500)
        self.guest['domid'] = 6
        self.assertEqual(0, self.measure(11, rx_packets=7)['packets_per_s'])
        self.assertEqual(0, self.measure(12, rx_packets=3)['packets_per_s'])

    def test_without_cosmosd_nothing_is_known(self):
        self.measure(10)
        self.load._client = cosmos_client.CosmosClient('/nowhere', 5)
        self.assertIsNone(self.load.measure())
        self.load._client = cosmos_client.CosmosClient(self.cosmosd.path, 60)
        self.assertIsNone(self.measure(12))
        self.assertIsNotNone(self.measure(13))
