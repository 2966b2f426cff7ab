# SPDX-License-Identifier: Apache-2.0
"""The help of each command: its examples are commands that it takes."""

import argparse
import configparser
import importlib
import pathlib
import shlex
import types
import unittest

from clickos_osc import command

_SETUP = pathlib.Path(__file__).parents[4] / 'setup.cfg'


def commands():
    """Return {words of a command: its class}."""
    setup = configparser.ConfigParser()
    setup.read(_SETUP)
    found = {}
    for line in setup['options.entry_points'][
            'openstack.clickos.v1'].strip().splitlines():
        name, _, place = line.partition(' = ')
        module, _, kind = place.partition(':')
        found[name.replace('_', ' ')] = getattr(
            importlib.import_module(module), kind)
    return found


class HelpTest(unittest.TestCase):

    def test_examples_can_be_copied(self):
        for words, kind in commands().items():
            with self.subTest(words):
                self._copy(words, kind)

    def _copy(self, words, kind):
        app = types.SimpleNamespace(client_manager=None)
        parser = kind(app, argparse.Namespace()).get_parser(words)
        lines = (parser.epilog or '').splitlines()[1:]
        self.assertTrue(lines)
        for line in lines:
            self.assertIn(line + '\n', parser.format_help())
            text = line.rpartition('| ')[2].partition(' > ')[0].strip()
            prefix = f'openstack {words} '
            self.assertTrue(f'{text} '.startswith(prefix), text)
            parser.parse_args(shlex.split(f'{text} '[len(prefix):]))

    def test_lines_of_an_example_become_one(self):
        self.assertEqual(
            ['openstack a --b c', 'x | openstack d'],
            command.examples([' openstack a \\\n  --b c\n',
                              'x | openstack d']))
