# SPDX-License-Identifier: Apache-2.0
"""Each promise of docs/promises.md names a test, and the test exists.

A row whose figure no test compares says so: ``untimed`` or ``read by a
person``. A test is a function or a class of one, or the file of a program.
"""

import re
import sys

from clickos_lab import checks
from clickos_lab import paths

PAGE = 'docs/promises.md'
_HEAD = '| promise | test | last figure | recorded | command |'
_WITHOUT_TEST = ('untimed', 'read by a person')
_CELLS = re.compile(r'(?<!\\)\|')
_NAME = re.compile(r'`([^`]+)`')
_RECORDED = re.compile(r'(≤ )?[0-9a-f]{7}, 20\d\d-\d\d-\d\d')
#: Of a Rust file: a function behind #[test], or of a block of proptest.
_RUST_TEST = re.compile(
    r'#\[test\]\s*(?:#\[[^\]]*\]\s*)*(?://[^\n]*\s*)*fn (\w+)')
_PYTHON_TEST = re.compile(r'^ *(?:def (test_\w+)|class (\w+Test))\b',
                          re.MULTILINE)


def rows(text):
    """Yield the cells of each promise, with the number of its line."""
    is_inside = False
    for number, line in enumerate(text.splitlines(), 1):
        is_inside = line == _HEAD or (is_inside and line.startswith('|'))
        if is_inside and line != _HEAD and not line.startswith('|--'):
            yield number, [c.strip() for c in _CELLS.split(line)[1:-1]]


def tests(names):
    """Return the tests that files of the repository define."""
    found = set()
    for name in names:
        if name.endswith('.rs'):
            found |= set(_RUST_TEST.findall(_text(name)))
        elif name.endswith('.py') and 'test' in name:
            found |= {a or b for a, b in _PYTHON_TEST.findall(_text(name))}
    return found


def _text(name):
    return (paths.REPO / name).read_text()


def problem(cells, known):
    """Return what is wrong with a row, or None."""
    if len(cells) != 5 or not all(cells):
        return f'{len(cells)} cells, some perhaps empty; 5 are expected'
    _promise, held, _figure, recorded, _command = cells
    if not _RECORDED.fullmatch(recorded):
        return f'recorded: expected COMMIT, DATE, got "{recorded}"'
    if held in _WITHOUT_TEST:
        return None
    named = _NAME.findall(held)
    missing = [name for name in named if name not in known]
    if missing or not named:
        return f'test: {" ".join(missing) or held} does not exist'


def main():
    """Check all rows; 0 when all is well."""
    names = checks.tracked()
    known = tests(names) | set(names)
    found = list(rows(_text(PAGE)))
    problems = [f'{PAGE}:{number}: {wrong}' for number, cells in found
                if (wrong := problem(cells, known))]
    return checks.report(problems, len(found), 'promises')


if __name__ == '__main__':
    sys.exit(main())
