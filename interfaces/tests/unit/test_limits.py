# SPDX-License-Identifier: Apache-2.0
"""Limits that depend on each other, or that a crate of guests repeats."""

import json
import pathlib
import re
import unittest

from clickos_client import limits

_ROOT = pathlib.Path(__file__).parents[3]
_GUEST = _ROOT / 'clickos-image/crates/clickos-xen-net/src/device_watch.rs'
_CONTRACT = _ROOT / 'interfaces/clickos_client/contract.json'
_ESCAPED = 6


class LimitsTest(unittest.TestCase):

    def test_mtu_of_a_guest(self):
        found = re.findall(r'MTU_MAX.*= *(\d+)', _GUEST.read_text())
        self.assertEqual([str(limits.MTU)], found)

    def test_a_request_fits_into_a_line(self):
        line = json.loads(_CONTRACT.read_text())['limits']['line_bytes']
        names = limits.WRITES * limits.HANDLER_NAME
        self.assertLess(limits.VALUES_BYTES * _ESCAPED + names * 2, line)
