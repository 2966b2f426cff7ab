# SPDX-License-Identifier: Apache-2.0
"""The suite ``duties``: what RFCs ask of every network function.

Each row runs on every VNF of the catalog that it applies to. The last lines
are a table, with the reason where a row does not apply. It runs as root: the
stations are in network namespaces. Arguments name VNFs, by default all. With
``--guest`` each VNF is a guest of a process host instead of the program.
"""

import contextlib
import sys
import unittest

from clickos_lab import apt
from clickos_lab.duties import place
from clickos_lab.duties import rows
from clickos_lab import paths
from clickos_lab import prepare
from clickos_lab import processes
from clickos_lab.suites import unittests
from clickos_lab.vnf import csar
from clickos_lab.vnf import process_bench

_GUEST = '--guest'


def _case(name, host):
    """Return a class with a test for each duty of a VNF."""
    class Case(unittest.TestCase):

        @classmethod
        def setUpClass(cls):
            opened = place.opened(name, host)
            cls.place = opened.__enter__()
            cls.addClassCleanup(opened.__exit__, None, None, None)

    for number, row in enumerate(rows.DUTIES):
        if not row.reason(name, host is not None):
            setattr(Case, f'test_{number:02}', _test(row))
    Case.__name__ = Case.__qualname__ = name.replace('-', '_')
    globals()[Case.__name__] = Case     # a failed set-up is found by name
    return Case


def _test(row):
    def test(self):
        row.check(self, self.place)
    test.__doc__ = f'{row.name} ({row.rfc})'
    return test


def _table(names, failed, is_guest):
    """Return the rows of the table: pass, fail or the reason."""
    lines = []
    for number, row in enumerate(rows.DUTIES):
        has = [n for n in names if not row.reason(n, is_guest)]
        wrong = [n for n in has if (n, number) in failed]
        lines.append(f'{row.name} ({row.rfc})')
        passed = [n for n in has if n not in wrong]
        lines.append(f'    pass: {", ".join(passed)}')
        if wrong:
            lines.append(f'    FAIL: {", ".join(wrong)}')
        reasons = {}
        for name in names:
            if reason := row.reason(name, is_guest):
                reasons.setdefault(reason, []).append(name)
        lines.extend(f'    not applicable: {", ".join(found)}: {reason}'
                     for reason, found in reasons.items())
    return '\n'.join(lines)


def main(arguments):
    processes.clean_up_at_signals()
    state = paths.State()
    state.create()
    apt.ensure(state, apt.VNF_PACKAGES)
    names = [a for a in arguments if a != _GUEST] or csar.names()
    with contextlib.ExitStack() as undo:
        host = _host(state, undo) if _GUEST in arguments else None
        cases = [_case(name, host) for name in names]
        for case in cases:      # unittest leaves them out at a signal
            undo.callback(case.doClassCleanups)
        status, result = unittests.run(unittest.TestSuite(
            map(unittest.defaultTestLoader.loadTestsFromTestCase, cases)))
    failed = {_row(test) for test, _ in (*result.failures, *result.errors)}
    print(_table(names, failed, _GUEST in arguments), flush=True)
    return status


def _host(state, undo):
    """Return a process host; its programs are built first."""
    prepare.process_host(state)
    return process_bench.Host(state, undo)


def _row(test):
    """Return VNF and number of a failed test."""
    name, _, method = test.id().rpartition('.')
    number = method.removeprefix('test_')
    vnf = name.rpartition('.')[2].replace('_', '-')
    return vnf, int(number) if number.isdecimal() else None


if __name__ == '__main__':
    sys.exit(main(sys.argv[1:]))
