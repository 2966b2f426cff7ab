# SPDX-License-Identifier: Apache-2.0
"""Tests by stestr, whose failed tests run again alone.

``python -m clickos_lab.suites.stestr_tests STESTR RESULTS FOLDER KIND``:
the program, a folder for its results, and the tests ``FOLDER/tests/KIND``.
"""

import contextlib
import os
import re
import signal
import subprocess
import sys

from clickos_lab.suites import again

#: a test, or the set-up of a class
_FAILED = re.compile(
    r'^\{\d+\} (?:setUpClass \((\S+)\)|(\S+)) \[[^]]*\] \.\.\. FAILED$')
_COUNT = re.compile(r'^ - Failed: (\d+)$')
#: The worker of a test died, and its later tests did not run.
_CRASHED = re.compile(r'\[[^]]*\] \.\.\. inprogress$')
#: Tests of a class share names of the machine, so they have one worker.
_CLASS = r'([^.]*\.)*'


def follow(command, passes, **more):
    """Run a program that prints as stestr does.

    :param passes: runs one test, or all of a class whose set-up failed, and
        tells whether it passed
    :param more: for subprocess.Popen
    :returns: 0 when all passed, if need be alone
    """
    with ended_with_us(command, **more) as process:
        lines = [_shown(line) for line in process.stdout]
    if process.returncode == 0:
        return 0
    failed = [found[1] or found[2] for line in lines
              if (found := _FAILED.match(line))]
    counts = [int(found[1]) for line in lines if (found := _COUNT.match(line))]
    # A module that cannot be imported is counted and has a name, too.
    is_explained = counts == [len(failed)] and not any(
        _CRASHED.search(line) for line in lines)
    # A test that fails with a part has two lines.
    failed = list(dict.fromkeys(failed))
    return 0 if is_explained and again.judge(failed, passes) \
        else process.returncode


@contextlib.contextmanager
def ended_with_us(command, **more):
    """Run a program whose processes end when the wait for it is interrupted.

    They have a session of their own, so that no worker of theirs is left.
    """
    with subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL, text=True, errors='replace',
            start_new_session=True, **more) as process:
        try:
            yield process
        except BaseException:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            raise


def _shown(line):
    print(line, end='', flush=True)
    return line.rstrip('\n')


def main(stestr, results, folder, kind):
    """Run the tests of a folder; 0 when all passed."""
    os.makedirs(results, exist_ok=True)
    return follow(
        [stestr, '--test-path', f'{folder}/tests/{kind}', '--top-dir', folder,
         '--repo-url', results, 'run', '--concurrency', '2',
         '--group-regex', _CLASS], _passes)


def _passes(name):
    """Run one test alone; PYTHONPATH leads to its folder."""
    return subprocess.run(
        [sys.executable, '-m', 'unittest', name]).returncode == 0


if __name__ == '__main__':
    sys.exit(main(*sys.argv[1:]))
