# SPDX-License-Identifier: Apache-2.0
"""Checks of the repository itself; each module is a program."""

import subprocess

from clickos_lab import paths


def tracked():
    """Return every file git knows or would take, as paths from the root."""
    done = subprocess.run(
        ['git', '-c', f'safe.directory={paths.REPO}', '-C', paths.REPO,
         'ls-files', '-z', '--cached', '--others', '--exclude-standard'],
        capture_output=True, text=True, check=True)
    names = (name for name in done.stdout.split('\0') if name)
    return sorted(name for name in set(names)
                  if (paths.REPO / name).is_file())


def report(problems, checked, what):
    """Print the outcome; return the exit status.

    Nothing found to check is a failure too: the check would be void.
    """
    for problem in problems:
        print(problem)
    print(f'{checked} {what} checked, {len(problems)} problems')
    return 1 if problems or not checked else 0
