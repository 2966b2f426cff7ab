# SPDX-License-Identifier: Apache-2.0
"""``make audit``: dependencies against licenses and advisory databases.

cargo-deny reads RustSec's database, pip-audit the advisories of PyPI. Both
need the network, so the audit is no suite of ``make test``. A database that
does not answer fails the audit by name.
"""

import os
import pathlib
import subprocess
import sys

from clickos_lab import errors
from clickos_lab import log
from clickos_lab import openstack
from clickos_lab import paths
from clickos_lab import prereq
from clickos_lab import shell

_CARGO_DENY = '0.20.2'
_PIP_AUDIT = 'pip-audit==2.10.1'
#: The first needs no database.
_CHECKS = (('licenses', 'bans', 'sources'), ('advisories',))


def main():
    """Audit all dependencies; 0 when nothing was found."""
    state = paths.State()
    state.create()
    try:
        commands = [*_rust(state), _python(state)]
    except errors.LabError as e:
        log.warn(f'error: {e}')
        return 1
    failed = [command for command in commands
              if subprocess.run(command, cwd=paths.REPO).returncode]
    for date in _rust_database_dates():
        print(f'RustSec database: newest advisory of {date}')
    print(f'{len(commands) - len(failed)} passed, {len(failed)} failed')
    return 1 if failed else 0


def _rust(state):
    """Return the commands that audit our crates; install their tool."""
    root = state.root / 'audit-rust'
    tool = root / 'bin/cargo-deny'
    if not tool.exists():
        with log.step(f'cargo-deny {_CARGO_DENY}'):
            shell.run([prereq.rust_tool('cargo') or 'cargo', 'install',
                       'cargo-deny', '--version', _CARGO_DENY, '--locked',
                       '--root', root],
                      state.log / 'audit.log', timeout_s=1200)
    return [[tool, '--locked', '--manifest-path', 'Cargo.toml', '--config',
             paths.REPO / 'deny.toml', 'check', *checks]
            for checks in _CHECKS]


def _rust_database_dates():
    home = os.environ.get('CARGO_HOME') or '~/.cargo'
    folder = pathlib.Path(home).expanduser() / 'advisory-dbs'
    for clone in sorted(folder.glob('*/.git')):
        yield shell.output(['git', '-C', clone.parent, 'log', '-1',
                            '--format=%cs']).strip()


def _python(state):
    """Return the command that audits Python packages; install its tool."""
    folder = state.root / 'audit-python'
    if not (folder / 'bin/pip-audit').exists():
        with log.step(_PIP_AUDIT):
            log_file = state.log / 'audit.log'
            shell.run([sys.executable, '-m', 'venv', folder], log_file)
            shell.run([folder / 'bin/pip', 'install', _PIP_AUDIT], log_file)
    return [folder / 'bin/pip-audit', '--strict', '--no-deps',
            '--disable-pip', '--requirement', openstack.requirements()]


if __name__ == '__main__':
    sys.exit(main())
