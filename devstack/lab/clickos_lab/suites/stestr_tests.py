# SPDX-License-Identifier: Apache-2.0
"""A folder's tests by stestr; failed ones run again alone.

``python -m clickos_lab.suites.stestr_tests STESTR RESULTS FOLDER KIND``:
the program, a folder for its results, and the tests ``FOLDER/tests/KIND``.
"""

import os
import re
import subprocess
import sys

from clickos_lab.suites import again

_FAILED = re.compile(r'^\{\d+\} (\S+) \[[^]]*\] \.\.\. FAILED$')
_COUNT = re.compile(r'^ - Failed: (\d+)$')


def main(stestr, results, folder, kind):
    """Run the tests; 0 when all passed, if need be alone."""
    os.makedirs(results, exist_ok=True)
    with subprocess.Popen(
            [stestr, '--test-path', f'{folder}/tests/{kind}', '--top-dir',
             folder, '--repo-url', results, 'run', '--serial'],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            errors='replace') as process:
        lines = [_shown(line) for line in process.stdout]
    if process.returncode == 0:
        return 0
    failed = [found[1] for line in lines if (found := _FAILED.match(line))]
    counts = [int(found[1]) for line in lines if (found := _COUNT.match(line))]
    # A module that cannot be imported is counted and has a name, too.
    if counts == [len(failed)] and again.judge(failed, _passes):
        return 0
    return process.returncode


def _shown(line):
    print(line, end='', flush=True)
    return line.rstrip('\n')


def _passes(name):
    """Run one test alone; PYTHONPATH leads to its folder."""
    return subprocess.run(
        [sys.executable, '-m', 'unittest', name]).returncode == 0


if __name__ == '__main__':
    sys.exit(main(*sys.argv[1:]))
