# SPDX-License-Identifier: Apache-2.0
"""``cargo test`` whose failed tests run again alone; one that hangs is named.

``python -m clickos_lab.suites.cargo_tests CARGO [ARGUMENT ...]``: arguments
of ``cargo test``, with those of the tests behind ``--``.
"""

import os
import queue
import re
import signal
import subprocess
import sys
import time

from clickos_lab.suites import again
from clickos_lab.suites import runner

_FAILED = re.compile(r'^test (\S+)(?: - should panic)? \.\.\. FAILED$')
_ENDED = re.compile(r'^test (\S+)(?: - should panic)? \.\.\. \w+')
#: libtest's own line, after a minute; the test may still run for ever.
_SLOW = re.compile(r'^test (\S+) has been running for over \d+ seconds$')
#: Seconds until such a test counts as one that hangs: a busy machine takes
#: some times as long for it.
PATIENCE_S = 180
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
        self._slow = {}
        self._targets = self._failed_results = self._passed = self._count = 0

    def add(self, line):
        """Take a line of the output."""
        if found := _ENDED.match(line):
            self._slow.pop(found[1], None)
        if found := _FAILED.match(line):
            self.failed.append(found[1])
        elif found := _SLOW.match(line):
            self._slow[found[1]] = time.monotonic() + PATIENCE_S
        elif found := _RESULT.match(line):
            self._failed_results += found[1] == 'FAILED'
            self._passed += int(found[2])
            self._count += int(found[3])
        elif _TARGET.match(line):
            self._targets += 1

    def left_s(self):
        """Return the seconds until a test hangs; None if none is slow."""
        ends_s = self._slow.values()
        return max(0, min(ends_s) - time.monotonic()) if ends_s else None

    def give_up(self):
        """Call the test that is slow for longest one that hangs."""
        self.hangs = min(self._slow, key=self._slow.get)

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
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        errors='replace', process_group=0)
    lines = runner.lines_of(process.stdout)
    try:
        while (line := lines.get(timeout=run.left_s())) is not None:
            print(line, end='', flush=True)
            run.add(line.rstrip('\n'))
        return process.wait()
    except queue.Empty:
        run.give_up()
        return 1
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def _interrupted(_number, _frame):
    raise KeyboardInterrupt


if __name__ == '__main__':
    signal.signal(signal.SIGTERM, _interrupted)
    try:
        sys.exit(main(sys.argv[1], sys.argv[2:]))
    except KeyboardInterrupt:
        sys.exit(130)
