# SPDX-License-Identifier: Apache-2.0
"""The frames and values of the papers' figures."""

import json

from clickos_lab import errors
from clickos_lab.papers import command
from clickos_lab.papers import figure
from clickos_lab.papers import rig
from clickos_lab.papers import throughput
from clickos_lab import paths
from tests.unit import base


class FrameTest(base.TestCase):

    def test_a_frame_is_whole(self):
        for size in throughput.SIZES:
            data = rig.frame(size, rig.mac(1), rig.mac(2))
            frame = bytes.fromhex(data.removeprefix('\\<').removesuffix('>'))
            self.assertEqual(size - rig.FCS, len(frame))
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
