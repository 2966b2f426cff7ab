# SPDX-License-Identifier: Apache-2.0
"""openstack clickos rules convert."""

import argparse
import io
import pathlib
import tempfile
import types
import unittest
from unittest import mock

from osc_lib import exceptions

from clickos_osc import checker
from clickos_osc import rule_language
from clickos_osc.v1 import rules

GOLDEN = pathlib.Path(__file__).parents[2] / 'rules'
RULE = 'alert tcp any any -> any any (content:"%s"; sid:%d;)'
NAMES = ('HOME_NET', 'EXTERNAL_NET', 'PORTS')


class RuleLanguageTest(unittest.TestCase):

    def test_what_a_guest_takes_is_taken(self):
        lines = [line for line in (GOLDEN / 'taken.rules').read_text()
                 .splitlines() if not line.startswith('#')]
        self.assertEqual(11, len(lines))
        for line in lines:
            sid, _bits, _parts = rule_language.check(line, NAMES)
            self.assertIn(f'sid:{sid};', line)

    def test_zeros_in_front_of_a_number_do_not_count(self):
        self.assertEqual(7, rule_language.check(
            RULE.replace('%d', '0' * 5000 + '7') % 'a')[0])

    def test_what_it_refuses_is_refused_with_the_same_words(self):
        lines = (GOLDEN / 'refused.rules').read_text().splitlines()[2:]
        for reason, line in zip(lines[::2], lines[1::2]):
            with self.subTest(line), self.assertRaises(
                    rule_language.Refused) as refused:
                rule_language.check(line, NAMES)
            self.assertIn(reason.removeprefix('# '), str(refused.exception))

    def test_bounds_are_named(self):
        many = 'content:"a"; ' * 17
        ports = ','.join(['80'] * 257)
        for rule, words in (
                (RULE % ('a' * 256, 1), '256 bytes, the limit is 255'),
                (RULE.replace('content:"%s"; ', many) % 1,
                 '17 in a rule, the limit is 16'),
                (RULE.replace('content', 'noalert;' * 64 + 'content') % (
                    'a', 1), '66 options, the limit is 64'),
                (RULE.replace('any (', f'[{ports}] (') % ('a', 1),
                 '257 in a list, the limit is 256'),
                (RULE.replace('any (', '[' * 30 + ']' * 30 + ' (') % (
                    'a', 1), 'more than 8 lists'),
                (RULE.replace('con', f'msg:"{"x" * 201}"; con') % ('a', 1),
                 '201 bytes, the limit is 200'),
                (RULE.replace('sid', f'pcre:"/{"x" * 520}/"; sid') % (
                    'a', 1), '522 bytes, the limit is 512'),
                (RULE % ('a', 1) + ' ' * 8192, 'the limit is 8192'),
                (RULE.replace('any (', '[' + 'a' * 9_000_000 + ' (') % (
                    'a', 1), 'characters, the limit is 8192'),
                (RULE.replace('%d', '0' * 32 + '9' * 40) % 'a',
                 'sid: 9{32}, the limit is 4294967295'),
                (RULE.replace('%d', '1' * 5000) % 'a',
                 'the limit is 4294967295'),
                (RULE % ('\N{CONTROL SEQUENCE INTRODUCER}2J', 1),
                 'printable ASCII'),
                (RULE % ('a\0', 1), 'printable ASCII')):
            with self.assertRaisesRegex(rule_language.Refused, words):
                rule_language.check(rule)


class ConvertTest(unittest.TestCase):

    def setUp(self):
        super().setUp()
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.output = self.folder / 'taken.rules'

    def convert(self, text, *words):
        """Return the rows, and what the command says."""
        path = self.folder / 'some.rules'
        path.write_text(text)
        app = types.SimpleNamespace(stderr=io.StringIO(), client_manager=None)
        command = rules.ConvertRules(app, argparse.Namespace())
        parsed = command.get_parser('openstack').parse_args(
            [str(path), '--output', str(self.output), *words])
        columns, rows = command.take_action(parsed)
        self.assertEqual(('Line', 'SID', 'Reason'), columns)
        return rows, app.stderr.getvalue()

    def test_each_rule_is_taken_or_reported(self):
        text = '\n'.join((
            '# alert tcp any any -> any any (content:"off"; sid:9;)',
            RULE % ('a', 1), '', RULE % ('b', 1),
            'alert tcp any any -> \\', ' $SERVERS any (content:"c"; sid:2;)',
            'alert http any any -> any any (http.uri; content:"x"; sid:3;)',
            RULE.replace('any (', '$PORTS (') % ('d', 4)))
        rows, said = self.convert(text, '--var', 'SERVERS=[10.0.0.1, !any2]')
        self.assertEqual([4, 7, 8], [row[0] for row in rows])
        self.assertEqual(['1', '3', '4'], [row[1] for row in rows])
        self.assertIn('given twice', rows[0][2])
        self.assertIn('--var PORTS=VALUE', rows[2][2])
        self.assertEqual('2 rules are taken, 3 are not\n', said)
        self.assertEqual(
            ['var SERVERS [10.0.0.1,!any2]', RULE % ('a', 1),
             'alert tcp any any ->  $SERVERS any (content:"c"; sid:2;)'],
            self.output.read_text().splitlines())

    def test_a_set_is_no_larger_than_a_guest_takes(self):
        text = '\n'.join(RULE % ('a', sid) for sid in range(1, 4100))
        rows, said = self.convert(text)
        self.assertIn('4096 rules are taken, 3 are not', said)
        self.assertIn('4097 rules, the limit is 4096', rows[0][2])
        bits = '\n'.join((RULE % ('a', n)).replace('sid', f'flowbits:set,b{n}'
                                                   '; sid')
                         for n in range(1, 66))
        rows, _said = self.convert(bits)
        self.assertEqual(1, len(rows))
        self.assertIn('65 names of flowbits, the limit is 64', rows[0][2])
        plain = '\n'.join(f'alert udp any any -> any {n} (sid:{n};)'
                          for n in range(1, 66))
        self.assertIn('65 rules without a content', self.convert(plain)[0][
            0][2])
        named = plain.replace('(', '(msg:"content: none";')
        self.assertEqual(1, len(self.convert(named)[0]))

    def test_the_program_has_the_last_word(self):
        text = '\n'.join(RULE % (word, sid + 1)
                         for sid, word in enumerate('abcd'))
        configs = []

        def faults(_program, config, _vifs):
            configs.append(config)
            return ['<stdin>:1: i :: StreamInspector: RULE: line 3: pcre: '
                    'too many'] if 'sid:2' in config else []
        with mock.patch.object(checker, 'faults', faults):
            rows, said = self.convert(text, '--click', '--var', 'X=any')
        self.assertEqual([(2, '2', 'pcre: too many')], rows)
        self.assertIn('3 rules are taken, 1 are not', said)
        self.assertNotIn('sid:2', self.output.read_text())
        self.assertIn('content:\\"a\\"', configs[0])

    def test_a_fault_of_a_variable_removes_no_rule(self):
        with mock.patch.object(checker, 'faults', lambda *_args: [
                'RULE: line 1: var: wrong']), self.assertRaisesRegex(
                exceptions.CommandError, '--var X: var: wrong'):
            self.convert(RULE % ('a', 1), '--click', '--var', 'X=any')

    def test_wrong_words_are_refused(self):
        for words in (('--var', 'X'), ('--var', '$X=1'),
                      ('--var', 'X=a\nb'), ('--output', '/nowhere/x')):
            with self.assertRaises(exceptions.CommandError):
                self.convert(RULE % ('a', 1), *words)

    def test_hostile_text_takes_no_time_and_moves_no_cursor(self):
        text = 'alert tcp any any -> any any (' + '"\\' * 50000 + ')\n' \
            + 'alert \x1b[2J tcp (sid:1;)\n' + '[' * 100000
        rows, _said = self.convert(text)
        self.assertEqual(3, len(rows))
        self.assertNotIn('\x1b', ''.join(row[2] for row in rows))
