# SPDX-License-Identifier: Apache-2.0
"""openstack clickos graph, against the real service over HTTP."""

import itertools
import os
import tempfile

from osc_lib import exceptions

from clickos_osc.v1 import graph
from tests.unit.clickos_osc import base

ELEMENTS = 'element in FromDevice 0\nelement out ToDevice 3\n'


def _answer(seconds, packets):
    return (f'watched_ns {seconds * 10 ** 9}\n{ELEMENTS}'
            f'connection in 0 out 0 push {packets} {packets * 100}\n')


class Answers(dict):
    """A guest whose answers follow each other."""

    def __init__(self, answers):
        super().__init__({'graph': ''})
        self._answers = itertools.cycle(answers)

    def __getitem__(self, name):
        return next(self._answers)


class GraphTest(base.CommandTestCase):

    def graph(self, answers, *arguments):
        """Run the command on a guest with these answers."""
        self.agent.guests[self.server_id] = Answers(answers)
        return self.run_command(graph.ShowGraph, 'my-fw', '--interval',
                                '0.1', *arguments)[0]

    def test_rates(self):
        columns, rows = self.graph([_answer(1, 100), _answer(3, 300)])
        self.assertEqual('From', columns[0])
        self.assertEqual([('in [0]', 'out [0]', 'push', 100, 80000, 300,
                           30000, 3)], rows)

    def test_picture(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, 'fw.svg')
            self.graph([_answer(1, 100), _answer(3, 300)], '--svg', path)
            with open(path, encoding='utf-8') as drawn:
                self.assertIn('in :: FromDevice', drawn.read())
            with self.assertRaisesRegex(exceptions.CommandError, 'No such'):
                self.graph([_answer(1, 1), _answer(3, 2)], '--svg',
                           os.path.join(folder, 'no', 'fw.svg'))

    def test_refusals(self):
        for answers, error in (
                (['\x1b[2J'], r"answers no graph: graph:1"),
                ([_answer(3, 1), _answer(1, 1)], 'another router meanwhile')):
            with self.assertRaisesRegex(exceptions.CommandError, error):
                self.graph(answers)
        with self.assertRaisesRegex(exceptions.CommandError, '--interval'):
            self.graph([''], '--interval', 'nan')
