# SPDX-License-Identifier: Apache-2.0
"""The frames and values of the papers' figures."""

import json

from clickos_lab import errors
from clickos_lab.papers import command
from clickos_lab.papers import figure
from clickos_lab.papers import spread
from clickos_lab.papers import testbed
from clickos_lab.papers import throughput
from clickos_lab import paths
from tests.unit import base


class FrameTest(base.TestCase):

    def test_a_frame_is_whole(self):
        for size in throughput.SIZES:
            data = testbed.frame(size, testbed.mac(1), testbed.mac(2))
            frame = bytes.fromhex(data.removeprefix('\\<').removesuffix('>'))
            self.assertEqual(size - testbed.FCS, len(frame))
            self.assertEqual('020000010002020000010001', frame[:12].hex())
            header = frame[14:34]
            total = sum(int.from_bytes(header[at:at + 2], 'big')
                        for at in range(0, 20, 2))
            self.assertEqual(0xffff, (total & 0xffff) + (total >> 16))
            self.assertEqual(len(frame) - 14,
                             int.from_bytes(header[2:4], 'big'))


class FigureTest(base.TestCase):

    def test_a_point_is_the_median_with_its_extremes(self):
        made = figure.Figure('a', 'b', 'c', 'd', 'e')
        made.add('line', 64, [3, 1, 2])
        read = json.loads(made.text(commit='0'))
        self.assertEqual([[64, 2, 1, 3]], read['lines']['line'])
        self.assertEqual('0', read['commit'])

    def test_an_unknown_figure_is_named(self):
        with self.assertRaisesRegex(errors.LabError,
                                    '^99: no such figure; there are 4, 5'):
            command.run(paths.State(), ['7', '99'])


class SpreadTest(base.TestCase):

    LOOK = {
        'ports': [{'name': 'vale0:gen', 'tx': 0, 'frames_a_burst': 60,
                   'kicks_received': 3, 'kicks_sent': 2},
                  {'name': 'vale0:sink', 'tx': 1000, 'drops': 5,
                   'kicks_sent': 4}],
        'workers': [{'name': '0', 'sleeps': 1, 'yields': 7, 'rounds': 20,
                     'rounds_empty': 9}]}

    def test_a_second_has_the_figures_of_both_ports_and_the_worker(self):
        self.assertEqual(
            {'received': 1000, 'lost': 5, 'frames a burst': 60,
             'kicks of sender': 3, 'kicks to sender': 2,
             'kicks to receiver': 4, 'sleeps': 1, 'yields': 7, 'rounds': 20,
             'empty rounds': 9}, spread.figures(self.LOOK))

    def test_a_second_without_ports_has_zeros(self):
        found = spread.figures({'ports': [], 'workers': []})
        self.assertEqual({0}, set(found.values()))

    def test_a_place_compares_the_slowest_second_to_the_fastest(self):
        slow, fast = spread.figures(self.LOOK), spread.figures(self.LOOK)
        slow['received'], fast['received'] = 1_000_000, 4_000_000
        lines = spread.table('one', [fast, slow, fast])
        self.assertEqual('one: 1.00 to 4.00 million frames a second, '
                         'slowest 0.25 of the fastest', lines[0])
        self.assertEqual(['lost', '5', '5', '5'], lines[2].split())
