# SPDX-License-Identifier: Apache-2.0
"""Costs of netback by step, from its trace events."""

import unittest

from tests.figures import netback_steps

#: Of two guests: the first sends 2 packets, and the second takes them.
_TRACE = """\
  <idle>-0     [000] ..s1.   1000: xenvif_tx_begin: vif1.0-q0 count=64
  <idle>-0     [000] ..s1.   1100: xenvif_tx_read: vif1.0-q0 count=2
  <idle>-0     [000] ..s1.   1400: xenvif_tx_copied: vif1.0-q0 count=2
  <idle>-0     [000] ..s1.   1410: xenvif_tx_mapped: vif1.0-q0 count=0
  <idle>-0     [000] ..s1.   2410: xenvif_tx_passed_on: vif1.0-q0 count=2
  <idle>-0     [000] ..s1.   2500: xenvif_tx_begin: vif1.0-q0 count=64
  <idle>-0     [000] ..s1.   2510: xenvif_tx_read: vif1.0-q0 count=0
 vif2.0-q0-gu-9 [000] .....   3000: xenvif_rx_begin: vif2.0-q0 count=2
 vif2.0-q0-gu-9 [000] .....   3200: xenvif_rx_prepared: vif2.0-q0 count=2
  <idle>-0     [000] ..s1.   3210: xenvif_tx_begin: vif1.0-q0 count=64
  <idle>-0     [000] ..s1.   3220: xenvif_tx_read: vif1.0-q0 count=0
 vif2.0-q0-gu-9 [000] .....   3600: xenvif_rx_copied: vif2.0-q0 count=2
 vif2.0-q0-gu-9 [000] .....   3700: xenvif_rx_answered: vif2.0-q0 count=2
"""


class StepsTest(unittest.TestCase):

    def test_steps_of_batches_of_one_size(self):
        found = list(netback_steps.steps(_TRACE, 2))
        self.assertEqual(7, len(found))
        self.assertEqual([1] * 7, [batches for _, batches, _ in found])
        self.assertEqual([50, 150, 5, 500, 100, 200, 50],
                         [cost for _, _, cost in found])

    def test_batches_of_other_sizes_are_left_out(self):
        self.assertEqual([], list(netback_steps.steps(_TRACE, 32)))
