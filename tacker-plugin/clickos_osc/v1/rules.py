# SPDX-License-Identifier: Apache-2.0
"""openstack clickos rules convert."""

import re

from osc_lib import exceptions

from clickos_osc import command
from clickos_osc import files
from clickos_osc import formatting
from clickos_osc import lazy
from clickos_osc import rule_language

checker = lazy.module('clickos_osc.checker')

MAX_BYTES = 64 * 1024 * 1024
#: Rules of a guest, those of them without a content, expressions, bits.
MAX_RULES, MAX_PLAIN, MAX_PCRE, MAX_BITS = 4096, 64, 256, 64
#: Variables of every guest.
_USUAL = ('HOME_NET', 'EXTERNAL_NET')
_VARIABLE = re.compile(r'([A-Za-z0-9_]{1,64})=([!-~ ]{1,4096})\Z')
#: Runs of the program that judges what is left.
_MOST_RUNS = 100
_LINE = re.compile(r'RULE: line (\d+): (.*)')


class ConvertRules(command.Lister):
    """Write what a guest takes of a file of Suricata's rules, and list the
    rest.

    The table has line, sid and reason of each rule that is not taken. Rules
    that are comments count as switched off. With --click the program
    click-check judges the expressions, too. The command asks no service.

    Examples:
      openstack clickos rules convert local.rules --output taken.rules
      openstack clickos rules convert local.rules --var HOME_NET=10.0.0.0/8
    """

    auth_required = False

    def get_parser(self, prog_name):
        """Add the arguments."""
        parser = super().get_parser(prog_name)
        parser.add_argument('file', metavar='<file>',
                            help='The rules; - is standard input')
        parser.add_argument('--output', metavar='<file>',
                            help='Where to write the rules that are taken')
        parser.add_argument('--var', metavar='<name=value>', action='append',
                            default=[], help='A variable of the rules; may'
                            ' be repeated')
        parser.add_argument('--click', action='store_true',
                            help='Let click-check judge what is left')
        parser.add_argument(
            '--program', metavar='<path>', default=checker.PROGRAM,
            help=f'The checking program (default: {checker.PROGRAM})')
        return parser

    def take_action(self, parsed_args):
        """Return columns and rows."""
        variables = _variables(parsed_args.var)
        raw = files.content(parsed_args.file, MAX_BYTES, 'a file of rules')
        taken, rows = convert(raw.decode(errors='replace'), variables)
        if parsed_args.click:
            rows += _of_click(variables, taken, parsed_args.program)
        if parsed_args.output:
            _write(parsed_args.output, _text(variables, taken))
        self.app.stderr.write(f'{len(taken)} rules are taken, {len(rows)}'
                              ' are not\n')
        return ('Line', 'SID', 'Reason'), sorted(
            (line, sid, formatting.line(reason)) for line, sid, reason in rows)


def _variables(texts):
    found = {}
    for text in texts:
        match = _VARIABLE.match(text)
        if not match:
            raise exceptions.CommandError(
                f'--var {text[:64]!r}: expected NAME=VALUE')
        found[match[1]] = ''.join(match[2].split())
    return found


def rules(text):
    """Yield the number and the text of each rule of a file.

    A backslash at the end of a line continues it.
    """
    first, parts = 0, []
    for number, line in enumerate(text.splitlines(), 1):
        first = first if parts else number
        if line.rstrip().endswith('\\'):
            parts.append(line.rstrip()[:-1])
            continue
        whole = ''.join([*parts, line]).strip()
        parts = []
        if whole and not whole.startswith('#'):
            yield first, whole


def convert(text, variables):
    """Return {line: rule} of those that are taken, and [line, sid, reason]
    of the others.
    """
    limits = _Limits()
    taken, rows = {}, []
    for number, rule in rules(text):
        try:
            limits.count(*rule_language.check(rule, {*_USUAL, *variables}))
            taken[number] = rule
        except rule_language.Refused as refused:
            found = re.search(r'\bsid\s*:\s*(\d{1,10})', rule)
            rows.append((number, found[1] if found else '', str(refused)))
    return taken, rows


class _Limits:
    """What a set of rules has few of."""

    def __init__(self):
        self._sids, self._bits, self._plain, self._pcre = set(), set(), 0, 0

    def count(self, sid, bits, parts):
        """Count a rule, of which check returned this.

        :raises rule_language.Refused: if it would be one too many
        """
        plain = self._plain + (not parts[0])
        pcre = self._pcre + parts[1]
        if sid in self._sids:
            raise rule_language.Refused(f'sid: {sid} is given twice')
        for count, limit, what in (
                (len(self._sids) + 1, MAX_RULES, 'rules'),
                (plain, MAX_PLAIN, 'rules without a content'),
                (pcre, MAX_PCRE, 'pcre in all rules'),
                (len(self._bits | bits), MAX_BITS, 'names of flowbits')):
            if count > limit:
                raise rule_language.Refused(
                    f'{count} {what}, the limit is {limit}')
        self._sids.add(sid)
        self._bits |= bits
        self._plain, self._pcre = plain, pcre


def _text(variables, taken):
    lines = [f'var {name} {value}' for name, value in variables.items()]
    return '\n'.join([*lines, *taken.values()]) + '\n'


def _of_click(variables, taken, program):
    """Remove what the program refuses; return the rows of it."""
    rows = []
    for _ in range(_MOST_RUNS):
        found = _faults(variables, taken, program)
        if not found:
            return rows
        numbers = list(taken)
        for at, reason in found:
            if at <= len(variables):
                name = list(variables)[at - 1]
                raise exceptions.CommandError(
                    formatting.line(f'--var {name}: {reason}'))
            rule = taken.pop(numbers[at - len(variables) - 1])
            sid = rule_language.check(rule, {*_USUAL, *variables})[0]
            rows.append((numbers[at - len(variables) - 1], str(sid), reason))
    raise exceptions.CommandError('too many rules are refused by the program')


def _faults(variables, taken, program):
    """Return the line in the text, and the reason, of each fault."""
    quoted = _text(variables, taken).replace('\\', '\\\\').replace('"', '\\"')
    config = (f'i :: StreamInspector("{quoted}"); Idle -> i -> Discard;'
              ' Idle -> [1]i[1] -> Discard;')
    texts = checker.faults(program, config, 0)
    found = [(int(match[1]), match[2]) for match in
             map(_LINE.search, texts) if match]
    if texts and not found:
        raise exceptions.CommandError(formatting.line(texts[0]))
    return found


def _write(path, text):
    try:
        with open(path, 'w', encoding='utf-8') as target:
            target.write(text)
    except OSError as exc:
        raise exceptions.CommandError(f'{path}: {exc.strerror}')
