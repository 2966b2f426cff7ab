# SPDX-License-Identifier: Apache-2.0
"""What has to be there before the lab can install the rest."""

import os
import pathlib
import re
import shutil
import subprocess
import sys

from clickos_lab import errors

#: The oldest and the newest that the lab is tried with.
PYTHONS = ((3, 11), (3, 13))
RUST_MIN = (1, 85)

_GET_PYTHON = (
    'Debian 12 and 13: apt-get install python3; elsewhere: pyenv install '
    '3.11. Another one is named with make PYTHON=/path/to/python3.11')
_GET_RUST = (
    'see https://rustup.rs; with rustup: rustup toolchain install stable '
    '--component rustfmt --component clippy')


def check():
    """Check Python, Rust, the user and the system.

    :raises LabError: naming everything that is missing and how to get it.
    """
    _require(_python(), _rust(), _user(), _system())


def check_tools():
    """Check Python and Rust, which is enough to work on the code.

    :raises LabError: naming everything that is missing and how to get it.
    """
    _require(_python(), _rust())


def _require(*found):
    problems = [p for p in found if p]
    if problems:
        raise errors.LabError('\n'.join(problems))


def _python():
    oldest, newest = PYTHONS
    if not oldest <= sys.version_info[:2] <= newest:
        return (f'{sys.executable}: Python {sys.version.split()[0]}, expected '
                f'3.{oldest[1]} to 3.{newest[1]}. {_GET_PYTHON}')


def _rust():
    for name in ('cargo', 'rustc'):
        path = rust_tool(name)
        if path is None:
            return f'{name}: not found. {_GET_RUST}'
    found = _version([path, '--version'])
    if found < RUST_MIN:
        return (f'{path}: Rust {found[0]}.{found[1]}, needed is '
                f'{RUST_MIN[0]}.{RUST_MIN[1]} or later. {_GET_RUST}')


def rust_tool(name):
    """Return the path of a Rust tool, also if rustup is not in PATH."""
    cargo_home = os.environ.get('CARGO_HOME') or '~/.cargo'
    fallback = pathlib.Path(cargo_home).expanduser() / 'bin'
    return shutil.which(name) or shutil.which(name, path=str(fallback))


def _version(command):
    try:
        done = subprocess.run(command, capture_output=True, text=True,
                              timeout=60)
    except (OSError, subprocess.TimeoutExpired):
        return (0, 0)
    found = re.search(r'(\d+)\.(\d+)', done.stdout)
    return (int(found[1]), int(found[2])) if found else (0, 0)


def _user():
    if os.geteuid() != 0:
        return ('not root: network namespaces, guests with user ids of their '
                'own and Debian packages need root; use sudo')


def _system():
    try:
        text = pathlib.Path('/etc/os-release').read_text()
    except OSError:
        text = ''
    if not re.search(r'^ID="?debian"?$', text, re.MULTILINE):
        return ('not Debian: packages are installed with apt; this is tested '
                'on Debian 12 and 13')
