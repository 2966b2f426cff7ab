# SPDX-License-Identifier: Apache-2.0
"""``cargo test`` whose failed tests run again alone; one that hangs is named.

``python -m clickos_lab.suites.cargo_tests CARGO [ARGUMENT ...]``: arguments
of ``cargo test``, with those of the tests behind ``--``.
"""

import os
import re
import signal
import subprocess
import sys

from clickos_lab.suites import again

_FAILED = re.compile(r'^test (\S+)(?: - should panic)? \.\.\. FAILED$')
#: libtest's own line; the test may still run for ever.
_HANGS = re.compile(r'^test (\S+) has been running for over \d+ seconds$')
#: The result of a program with tests, or of those of documents.
_RESULT = re.compile(r'^test result: (\w+)\. (\d+) passed; (\d+) failed;')
#: cargo's own line for each that failed, also for one without a result
_TARGET = re.compile(r'^error: (test|doctest) failed, to rerun pass ')


class Run:
    """The output of a run of ``cargo test``.

    Its numbers tell whether the failed tests explain the exit status: a
    program that crashed, or has no names of tests, fails without a result.
    """

    def __init__(self):
        self.failed = []
        self.hangs = None
        self._targets = self._failed_results = self._passed = self._count = 0

    def add(self, line):
        """Take a line of the output."""
        if found := _FAILED.match(line):
            self.failed.append(found[1])
        elif found := _HANGS.match(line):
            self.hangs = found[1]
        elif found := _RESULT.match(line):
            self._failed_results += found[1] == 'FAILED'
            self._passed += int(found[2])
            self._count += int(found[3])
        elif _TARGET.match(line):
            self._targets += 1

    @property
    def is_explained(self):
        """Return whether the names of failed tests are all that failed."""
        return (self._targets == self._failed_results
                and self._count == len(self.failed) > 0)

    @property
    def passed(self):
        """Return whether a test ran, and none failed."""
        return self._passed > 0 and self._count == 0


def main(cargo, arguments):
    """Run the tests; 0 when all passed, if need be alone."""
    run = Run()
    status = _execute([cargo, 'test', *arguments], run)
    if run.hangs:
        print(f'error: {run.hangs}: hangs', flush=True)
        return 1
    if status == 0 or not run.is_explained:
        return status
    return 0 if again.judge(
        run.failed, lambda name: _passes(cargo, arguments, name)) else status


def _passes(cargo, arguments, name):
    """Run one test alone, and others of its name in other programs."""
    before = arguments[:arguments.index('--')] if '--' in arguments \
        else arguments
    run = Run()
    status = _execute([cargo, 'test', *before, '--', '--exact', name], run)
    return status == 0 and run.passed and not run.hangs


def _execute(command, run):
    """Follow a command; end it when a test hangs. Return its status."""
    with subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            text=True, errors='replace', process_group=0) as process:
        try:
            for line in process.stdout:
                print(line, end='', flush=True)
                run.add(line.rstrip('\n'))
                if run.hangs:
                    break
            else:
                return process.wait()
            return 1
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)


def _interrupted(_number, _frame):
    raise KeyboardInterrupt


if __name__ == '__main__':
    signal.signal(signal.SIGTERM, _interrupted)
    try:
        sys.exit(main(sys.argv[1], sys.argv[2:]))
    except KeyboardInterrupt:
        sys.exit(130)
