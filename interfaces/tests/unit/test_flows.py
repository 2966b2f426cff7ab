# SPDX-License-Identifier: Apache-2.0
"""Flows that a guest gives to others, with guests that only note writes."""

import itertools
import unittest
from unittest import mock

from clickos_client import flows

HEAD = 'ip-rewriter 1\n'


class Guest:
    """A guest with parts of tables.

    :param tables: {element: [part]}
    """

    #: The names of the blocking handler.
    blocks = ('block_new_flows', 'hold')

    def __init__(self, name, **tables):
        self.name, self._tables, self.written = name, tables, []

    def list(self):
        """Return the handlers, also one of an element without flows."""
        return ['fw.config', *(f'{element}.{handler}'
                               for element in self._tables
                               for handler in ('state', 'merge',
                                               *self.blocks))]

    def read(self, element, part):
        """Return a part; after the last one there is nothing."""
        parts = self._tables[element]
        return parts[part] if part < len(parts) else ''

    def write(self, writes):
        """Note the writes."""
        self.written += writes


class GiveTest(unittest.TestCase):

    def test_every_taker_gets_all_flows_in_few_writes(self):
        source = Guest('g', pings=[], flows=[HEAD + 'a\nb\n', HEAD,
                                             HEAD + 'c\n'])
        targets = [Guest(name, flows=[], pings=[]) for name in 'ab']
        self.assertEqual(3, flows.transfer(source, targets))
        self.assertEqual([['flows.block_new_flows', '60'],
                          ['pings.block_new_flows', '60']], source.written)
        for target in targets:
            self.assertEqual([
                ['flows.merge', HEAD + 'a\nb\nc\n'],
                ['flows.block_new_flows', '0'],
                ['pings.block_new_flows', '0']], target.written)

    def test_guests_of_before_1_0(self):
        source, target = (Guest(name, flows=[HEAD + 'a\n']) for name in 'gt')
        for one, other in ((source, target), (target, source)):
            with self.subTest(source=one.name):
                source.blocks = ('hold',)
                one.written, other.written = [], []
                self.assertEqual(1, flows.transfer(one, [other]))
                held = one if one is source else other
                self.assertEqual('flows.hold', held.written[-1][0])
                new = other if held is one else one
                self.assertEqual('flows.block_new_flows', new.written[-1][0])

    def test_writes_for_agents_of_before_1_0(self):
        self.assertEqual(
            [['a.merge', 'x'], ['a.hold', '60']],
            flows.for_earlier_agents([['a.merge', 'x'],
                                      ['a.block_new_flows', '60']]))

    def test_a_write_is_bounded(self):
        line = 'x' * 99 + '\n'
        source = Guest('g', flows=[HEAD + line * 300] * 5)
        target = Guest('t', flows=[])
        self.assertEqual(1500, flows.transfer(source, [target]))
        self.assertEqual([60_000, 60_000, 30_000], [
            len(value) - len(HEAD)
            for name, value in target.written if name == 'flows.merge'])

    def test_a_hop_of_a_fused_guest(self):
        hop = Guest('g', flows=[HEAD + 'a\n'])
        fused = Guest('f', **{'fw/flows': [HEAD + 'b\nc\n'],
                              'ids/flows': []})
        part = flows.Part(fused, 'fw/')
        self.assertEqual(1, flows.transfer(hop, [part]))
        self.assertEqual([['fw/flows.merge', HEAD + 'a\n'],
                          ['fw/flows.block_new_flows', '0']], fused.written)
        self.assertEqual(2, flows.transfer(part, [hop]))
        self.assertEqual(['fw/flows.block_new_flows', '60'], fused.written[-1])
        self.assertEqual(['flows.block_new_flows', '0'], hop.written[-1])

    def test_guests_without_flows(self):
        source, target = Guest('g'), Guest('t')
        self.assertEqual(0, flows.transfer(source, [target]))
        self.assertEqual([], source.written + target.written)

    def test_another_configuration(self):
        source = Guest('g', flows=[HEAD + 'a\n'])
        targets = [Guest('t', flows=[]), Guest('u', nat=[])]
        with self.assertRaisesRegex(flows.FlowsError, 'guest u: flows: no'):
            flows.transfer(source, targets)
        self.assertEqual([], source.written + targets[0].written)

    def test_a_table_that_takes_too_long(self):
        source = Guest('g', flows=[HEAD + 'a\n' * 40_000] * 3)
        target = Guest('t', flows=[])
        times = mock.patch('time.monotonic', side_effect=[0] * 7 + [21])
        with times, self.assertRaisesRegex(flows.FlowsError,
                                           'g: not all flows .* 20 s'):
            flows.transfer(source, [target])
        self.assertEqual(1, len(target.written))

    def test_parts_without_end(self):
        for part in (HEAD, HEAD + 'a\n'):
            with self.subTest(part=part):
                self.refused(part, 'g: not all flows .* 20 s', mock.patch(
                    'time.monotonic', side_effect=itertools.count()))
                self.refused(part, 'more than 9 parts', mock.patch.object(
                    flows, '_PARTS', 9))

    def refused(self, part, words, limit):
        """Check that a source with the same part for ever is left."""
        source = Guest('g', flows=[])
        source.read = mock.Mock(return_value=part)
        with limit, self.assertRaisesRegex(flows.FlowsError, words):
            flows.transfer(source, [Guest('t', flows=[])])
        self.assertLess(source.read.call_count, 30)
