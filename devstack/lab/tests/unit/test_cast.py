# SPDX-License-Identifier: Apache-2.0
"""The picture that ``make cast`` draws of a recording."""

import re
from xml.etree import ElementTree

from clickos_lab.trial import drawing
from tests.unit import base

_SVG = '{http://www.w3.org/2000/svg}'
_SHELL = [
    drawing.Line(2.0, "host# cosmos write fw fw.config 'deny <&>'",
                 drawing.COMMAND),
    drawing.Line(3.0, 'curl: (28) timeout', drawing.FAULT),
    drawing.Line(4.0, "host# cosmos write fw fw.config 'allow all'",
                 drawing.COMMAND)]
_PING = [drawing.Line(n / 2, f'answer {n}', drawing.OUTPUT)
         for n in range(1, 13)]


class PictureTest(base.TestCase):

    def setUp(self):
        super().setUp()
        self.text = drawing.draw(_PING, _SHELL)
        self.root = ElementTree.fromstring(self.text)   # nosec B314: ours

    def test_it_has_each_line_as_it_was_printed(self):
        found = [part.text for part in self.root.iter(f'{_SVG}text')]
        for line in (*_PING, *_SHELL):
            self.assertIn(line.text, found)

    def test_answers_are_marked_while_the_rule_blocks(self):
        marks = [part for part in self.root.iter(f'{_SVG}rect')
                 if part.get('class', '').startswith('blocked')]
        self.assertEqual(5, len(marks))     # at 2, 2.5, 3, 3.5 and 4 s

    def test_its_end_shows_without_animation(self):
        group = [part for part in self.root.iter(f'{_SVG}g')
                 if part.get('transform')]
        self.assertEqual(['translate(0 -76)'],      # 4 of 12 lines of 19
                         [part.get('transform') for part in group])
        self.assertRegex(self.text, r'54\.55%\{transform:translateY\(-76px\)')

    def test_a_line_appears_at_its_time(self):
        second = 100 * 3.0 / (6 + 5)
        self.assertIn(f'{second:.2f}%{{opacity:1}}', self.text)
        self.assertEqual(1, len(re.findall('prefers-reduced', self.text)))
