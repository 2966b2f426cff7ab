# SPDX-License-Identifier: Apache-2.0
"""The help of each command: its examples are commands that it takes."""

import argparse
import configparser
import importlib
import inspect
import pathlib
import pkgutil
import shlex
import types
import unittest

from clickos_osc import command
from clickos_osc import v1

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


def classes():
    """Return the classes of v1 that act and are no base of others."""
    modules = [importlib.import_module(f'{v1.__name__}.{found.name}')
               for found in pkgutil.iter_modules(v1.__path__)]
    return {kind for module in modules for kind in vars(module).values()
            if inspect.isclass(kind) and kind.__module__ == module.__name__
            and hasattr(kind, 'take_action') and not kind.__subclasses__()}


class HelpTest(unittest.TestCase):

    def test_each_class_is_a_command(self):
        self.assertEqual(set(), classes() - set(commands().values()))

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
