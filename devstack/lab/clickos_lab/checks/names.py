# SPDX-License-Identifier: Apache-2.0
"""Every name, attribute and argument in Python exists: pylint's errors.

pylint reads each part with its own package ``tests``, as stestr runs it.
Its settings stand in ``pyproject.toml``.

``python -m clickos_lab.checks.names [PATH ...]`` reads the files below the
paths; without paths all Python of the repository.
"""

import collections
import concurrent.futures
import os
import subprocess
import sys

from clickos_lab import checks
from clickos_lab import paths

#: Folders whose modules are imported by their paths below, long ones first.
PARTS = (
    'tacker-plugin', 'devstack/lab', 'nova-driver', 'tempest-tests',
    'interfaces', 'clickos-image/benches', 'clickos-image/compare',
    'clickos-image/image', 'cosmos/python', 'vnfd-templates')
_REST = '.'
#: Runs side by side; the first parts take the longest.
_AT_ONCE = 2
#: Without garbage collection pylint takes half the processor time, and a fifth
#: more memory.
_PYLINT = ('import gc; gc.disable(); '
           'from pylint import run_pylint; run_pylint()')


def by_part(names):
    """Map each part to its files, as paths below it."""
    found = collections.defaultdict(list)
    for name in names:
        part = next((p for p in PARTS if name.startswith(f'{p}/')), _REST)
        found[part].append(os.path.relpath(name, part))
    return {part: found[part] for part in (*PARTS, _REST) if part in found}


def is_python(name):
    """Return whether a file is Python, by its name or first line."""
    if name.endswith('.py'):
        return True
    with open(paths.REPO / name, 'rb') as f:
        first = f.readline(100)
    return first.startswith(b'#!') and b'python' in first


def read(folder, names):
    """Return pylint's status and what it prints about files of a folder."""
    others = [str(paths.REPO / part) for part in PARTS]
    done = subprocess.run(
        [sys.executable, '-c', _PYLINT, '--rcfile',
         paths.REPO / 'pyproject.toml', '--score=n', *names],
        cwd=folder, capture_output=True, text=True,
        env={**os.environ, 'PYTHONPATH': os.pathsep.join(
            [str(folder), *others])})
    return done.returncode, done.stdout + done.stderr


def main(wanted):
    """Check the files below some paths; 0 when all is well."""
    names = [n for n in checks.tracked() if is_python(n)
             and (not wanted or n.startswith(tuple(wanted)))]
    parts = by_part(names)
    with concurrent.futures.ThreadPoolExecutor(_AT_ONCE) as pool:
        results = list(pool.map(
            lambda part: read(paths.REPO / part, parts[part]), parts))
    problems = [f'{part}:\n{text}' for part, (status, text)
                in zip(parts, results) if status]
    return checks.report(problems, len(names), 'files')


if __name__ == '__main__':
    sys.exit(main(sys.argv[1:]))
