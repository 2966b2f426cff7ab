# SPDX-License-Identifier: Apache-2.0
"""Answers of the handler graph: parsed, compared, drawn."""

import unittest
from xml.etree import ElementTree

from clickos_client import graph
from clickos_client import picture

ANSWER = """watched_ns 1000000000
element in FromDevice 0
element fw IPFilter 7
element out ToDevice 0
connection in 0 fw 0 push 1000 64000
connection fw 0 out 0 push 993 63552
"""


class ParseTest(unittest.TestCase):

    def test_an_answer(self):
        parsed = graph.parse(ANSWER)
        self.assertEqual(1_000_000_000, parsed.watched_ns)
        self.assertEqual(graph.Element('fw', 'IPFilter', 7),
                         parsed.elements[1])
        self.assertEqual(
            graph.Connection(('fw', 0), ('out', 0), False, 993, 63552),
            parsed.connections[1])

    def test_refusals_name_the_line(self):
        for text, error in (
                ('', 'graph: no line watched_ns'),
                ('watched_ns -1', "graph:1: '-1' is not a number"),
                ('watched_ns ' + '9' * 5000, 'graph:1: .* is not a number'),
                ('watched_ns \N{ARABIC-INDIC DIGIT ONE}', 'is not a number'),
                ('element a\x1b[2J X 0', 'graph:1: .* is not a name'),
                ('element  X 0', "graph:1: '' is not a name"),
                ('element a X', 'graph:1: neither'),
                ('connection a 0 b 0 push 1 1', "no element 'a' above"),
                ('element a X 0\nconnection a 0 a 0 up 1 1',
                 'graph:2: a connection has'),
                ('\n' * 30_000, 'graph: 30000 lines, the limit is 20000')):
            with self.subTest(text[:40]), \
                    self.assertRaisesRegex(ValueError, error):
                graph.parse(text)


class RatesTest(unittest.TestCase):

    def test_difference_of_two_answers(self):
        later = (ANSWER.replace('watched_ns 1', 'watched_ns 3')
                 .replace('push 1000 64000', 'push 3000 192000'))
        found = graph.rates(graph.parse(ANSWER), graph.parse(later))
        self.assertEqual([graph.Rate(1000.0, 512000.0), graph.Rate()], found)

    def test_counts_that_began_again(self):
        self.assertIsNone(graph.rates(
            graph.parse(ANSWER),
            graph.parse(ANSWER.replace('watched_ns 1', 'watched_ns 0'))))

    def test_another_router(self):
        other = (ANSWER.replace('watched_ns 1', 'watched_ns 2')
                 .replace('fw 0 out 0', 'fw 1 out 0'))
        self.assertIsNone(graph.rates(graph.parse(ANSWER),
                                      graph.parse(other)))


class PictureTest(unittest.TestCase):

    def test_elements_stand_behind_their_senders(self):
        self.assertEqual({'in': 0, 'fw': 1, 'out': 2},
                         picture.columns(graph.parse(ANSWER)))

    def test_circles_are_drawn(self):
        text = ANSWER + 'connection out 0 in 0 push 0 0\n'
        self.assertEqual({0, 1, 2},
                         set(picture.columns(graph.parse(text)).values()))
        ElementTree.fromstring(picture.svg(graph.parse(text)))

    def test_names_are_escaped(self):
        name = 'a<script>&"\''
        text = f'watched_ns 1\nelement {name} B 0\n'
        drawn = picture.svg(graph.parse(text))
        self.assertNotIn('<script>', drawn)
        texts = [e.text for e in ElementTree.fromstring(drawn).iter()]
        self.assertIn(name, texts)

    def test_long_chains_need_no_deep_stack(self):
        names = [f'e{n}' for n in range(5000)]
        lines = ['watched_ns 1'] + [f'element {n} X 0' for n in names]
        lines += [f'connection {a} 0 {b} 0 push 0 0'
                  for a, b in zip(names, names[1:])]
        columns = picture.columns(graph.parse('\n'.join(lines)))
        self.assertEqual(4999, columns['e4999'])

    def test_rates_for_people(self):
        for number, text in ((0, '0'), (950, '950'), (1234, '1.23 k'),
                             (999_999, '1 M'), (14_000_000, '14 M')):
            with self.subTest(number):
                self.assertEqual(text, picture.si(number))
