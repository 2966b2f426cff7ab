# SPDX-License-Identifier: Apache-2.0
"""Each row of docs/promises.md is held by a test, which its command runs.

A row with a bound repeats a number of docs/bounds.toml and names its key; no
other row has that key. The test's file, or a file next to it that it names,
reads the key. The page's other tables have guarantees without a number. A
test is a function or a class of tests, or the file of a program.
"""

import collections
import dataclasses
import re
import sys

from clickos_lab import bounds
from clickos_lab import checks
from clickos_lab.checks import promise_tests
from clickos_lab import paths

PAGE = 'docs/promises.md'
#: Head of a table: whether its rows have a bound.
HEADS = {'| guarantee | bound | test | command |': True,
         '| guarantee | test | command |': False}
_CELLS = re.compile(r'(?<!\\)\|')
_CODE = re.compile(r'`([^`]+)`')
_BOUND = re.compile(r'(?:(at most|at least) )?([\d.,]*\d)\b.*\(`(\w+)`\)')
_WORDS = {bounds.MAX: 'at most', bounds.MIN: 'at least'}


class Wrong(Exception):
    """A row that is no promise."""


@dataclasses.dataclass
class Promise:
    """A row of the page."""

    line: int
    guarantee: str
    #: the cell of the bound; empty if the table has none
    bound: str
    tests: list[str]
    commands: list[str]

    @property
    def key(self):
        """The key of the bound, or None."""
        found = _BOUND.fullmatch(self.bound)
        return found and found[3]


def read(text):
    """Yield the promises of a page.

    :raises Wrong: if a row lacks a cell, a test or a command
    """
    has_bound = None
    for number, line in enumerate(text.splitlines(), 1):
        has_bound = HEADS.get(line, has_bound if line.startswith('|')
                              else None)
        if has_bound is None or line in HEADS or line.startswith('|--'):
            continue
        cells = [cell.strip() for cell in _CELLS.split(line)[1:-1]]
        expected = 4 if has_bound else 3
        if len(cells) != expected or not all(cells):
            raise Wrong(f'{PAGE}:{number}: expected {expected} cells with '
                        f'text, got {len(cells)}')
        if not has_bound:
            cells.insert(1, '')
        found = Promise(number, *cells[:2], _CODE.findall(cells[2]),
                        _CODE.findall(cells[3]))
        if not found.tests or not found.commands:
            raise Wrong(f'{PAGE}:{number}: no test or no command in '
                        'backticks')
        yield found


def problems(promises, known, tests):
    """Yield what is wrong with the page, a line for each.

    :param promises: the rows
    :param known: {key: bound} of the file
    :param tests: promise_tests.Tests of the repository
    """
    for each in promises:
        for check in (lambda row: _check_bound(row, known),
                      lambda row: _check_tests(row, tests)):
            try:
                check(each)
            except Wrong as wrong:
                yield f'{PAGE}:{each.line}: {wrong}'
    used = collections.Counter(each.key for each in promises if each.key)
    for key in known:
        if used[key] != 1:
            yield f'docs/bounds.toml: {key}: {used[key]} rows, expected one'


def _check_bound(row, known):
    if not row.bound:
        return
    found = _BOUND.fullmatch(row.bound)
    if not found:
        raise Wrong(f'bound: expected "at most NUMBER UNIT (`key`)", got '
                    f'"{row.bound}"')
    word, number, key = found.groups()
    if key not in known:
        raise Wrong(f'bound: docs/bounds.toml lacks {key}')
    value = float(number.replace(',', ''))
    if value != known[key]:
        raise Wrong(f'bound: {number}, docs/bounds.toml has '
                    f'{key} = {known[key]}')
    expected = _WORDS[key[:len(bounds.MAX)]]
    if word != expected and (word or value or expected != 'at most'):
        raise Wrong(f'bound: expected "{expected}" for {key}, got "{word}"')


def _check_tests(row, tests):
    for name in row.tests:
        files = tests.files(name)
        if not files:
            raise Wrong(f'test: {name} does not exist')
        if row.key and not any(tests.reads(file, row.key)
                               for file in files):
            raise Wrong(f'test: {name} does not read {row.key}')
        if not any(tests.runs(command, name, file)
                   for command in row.commands for file in files):
            raise Wrong(f'command: does not run {name}')


def main():
    """Check all rows; 0 when all is well."""
    text = (paths.REPO / PAGE).read_text()
    try:
        rows, known = list(read(text)), bounds.read()
    except (Wrong, ValueError) as wrong:
        return checks.report([str(wrong)], 1, 'promises')
    found = problems(rows, known, promise_tests.Tests(checks.tracked()))
    return checks.report(list(found), len(rows), 'promises')


if __name__ == '__main__':
    sys.exit(main())
