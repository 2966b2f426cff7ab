# SPDX-License-Identifier: Apache-2.0
"""shellcheck for every shell script, bashate for those in bash."""

import subprocess
import sys

from clickos_lab import checks
from clickos_lab import paths

#: E006: our lines may be 120 columns wide.
_BASHATE = ('bashate', '--ignore', 'E006')


def shell_of(name):
    """Return 'sh' or 'bash' for a script, None for another file."""
    with open(paths.REPO / name, 'rb') as f:
        first = f.readline(80)
    if first.startswith(b'#!'):
        words = first[2:].replace(b'/', b' ').split()
        return next((s for s in ('bash', 'sh') if s.encode() in words), None)
    return 'bash' if name.endswith('.sh') else None


def main():
    """Check all scripts; 0 when all is well."""
    scripts = {n: s for n in checks.tracked() if (s := shell_of(n))}
    in_bash = [n for n, s in scripts.items() if s == 'bash']
    failed = []
    for command in (['shellcheck', '--severity=style', *scripts],
                    [*_BASHATE, *in_bash]):
        if subprocess.run(command, cwd=paths.REPO).returncode:
            failed.append(f'{command[0]} found something, see above')
    return checks.report(failed, len(scripts), 'scripts')


if __name__ == '__main__':
    sys.exit(main())
