# SPDX-License-Identifier: Apache-2.0
"""The limits of the Python side beside those of the Rust side."""

import pathlib
import re
import unittest

from clickos_client import limits

_ROOT = pathlib.Path(__file__).parents[3]
_ESCAPED = 6


def _number(path, pattern):
    """Return the only number that a Rust file has in this place."""
    text = (_ROOT / path).read_text()
    found = re.findall(pattern + r' *(\d+)(?: << (\d+))?', text)
    if len(found) != 1:
        raise AssertionError('%s: %d places like %s'
                             % (path, len(found), pattern))
    number, shift = found[0]
    return int(number) << int(shift or 0)


class LimitsTest(unittest.TestCase):

    def test_writes(self):
        self.assertEqual(limits.WRITES, _number(
            'interfaces/clickos-protocol/src/command.rs', 'WRITES_MAX.*='))

    def test_reads(self):
        self.assertEqual(limits.READS, _number(
            'interfaces/cosmos-proto/src/request.rs', 'MAX_READS: usize ='))
        self.assertEqual(limits.READ_BYTES, _number(
            'interfaces/clickos-protocol/src/lib.rs', 'ANSWER_MAX.*='))

    def test_parameters_of_reads(self):
        self.assertEqual(limits.PARAMETER_BYTES, _number(
            'interfaces/cosmos-proto/src/request.rs', 'MAX_PARAM: usize ='))

    def test_names_of_handlers(self):
        self.assertEqual(limits.HANDLER_NAME, _number(
            'cosmos/cosmosd/src/spec.rs', r'"handler name", name.len\(\),'))

    def test_hops(self):
        self.assertEqual(limits.CHAIN_HOPS, _number(
            'interfaces/vale-proto/src/chain.rs', 'const MAX_HOPS.*='))

    def test_mtu(self):
        self.assertEqual(limits.MTU, _number(
            'interfaces/vale-proto/src/lib.rs', r'MTU_RANGE.*= 68\.\.='))
        self.assertEqual(limits.MTU, _number(
            'clickos-image/crates/clickos-xen-net/src/search.rs',
            'MTU_MAX.*='))

    def test_a_request_fits_into_a_line(self):
        line = _number('interfaces/control-socket/src/lib.rs', 'MAX_LINE.*=')
        names = limits.WRITES * limits.HANDLER_NAME
        self.assertLess(limits.VALUES_BYTES * _ESCAPED + names * 2, line)
