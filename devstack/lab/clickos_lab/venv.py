# SPDX-License-Identifier: Apache-2.0
"""The one virtual environment: OpenStack from PyPI, and our own packages."""

import pathlib
import shutil
import subprocess
import sys
import tempfile

from clickos_lab import log
from clickos_lab import openstack
from clickos_lab import paths
from clickos_lab import shell
from clickos_lab import stamps
from clickos_lab import version

UV = 'uv==0.9.0'
DISTRIBUTION = 'clickos-openstack'
#: setuptools and pbr are among the requirements, so a build downloads nothing.
_BUILD_INPUTS = (
    'setup.cfg', 'setup.py', 'pyproject.toml', 'README.md', 'LICENSE',
    'docs/bounds.toml',
    'nova-driver', 'tacker-plugin', 'tempest-tests', 'cosmos/python',
    'interfaces/clickos_client', 'vnfd-templates/clickos_types')


def ensure(state):
    """Make the environment as the release's file says; quick when it is."""
    wanted = stamps.digest([openstack.requirements()], UV, sys.version)
    stamp = _stamp(state)
    if stamps.fresh(stamp, wanted):
        return
    log_file = state.log / 'venv.log'
    with log.step(f'Python packages (OpenStack {openstack.release()}, '
                  'pinned)'):
        program = _uv(state, log_file)
        if not _runs(state.tool('python')):
            shell.run([program, 'venv', '--clear', '--python', sys.executable,
                       state.venv], log_file)
        # Packages of another release are removed; ours is installed again.
        shell.run([program, 'pip', 'install', '--exact', '--python',
                   state.tool('python'), '-r', openstack.requirements()],
                  log_file, timeout_s=3600)
        stamp.write_text(wanted)


def _stamp(state):
    return state.venv / 'requirements.stamp'


def _runs(python):
    """Return whether an interpreter is there and the one we want."""
    if not python.exists():
        return False
    done = subprocess.run(
        [python, '-c', 'import sys; print(sys.version)'],
        capture_output=True, text=True)
    return done.stdout.strip() == sys.version


def uv(state):
    """Return the path of uv, which installs packages; it may be missing."""
    return state.uv / 'bin' / 'uv'


def _uv(state, log_file):
    program = uv(state)
    if not program.exists():
        shell.run([sys.executable, '-m', 'venv', state.uv], log_file)
        shell.run([state.uv / 'bin' / 'pip', 'install',
                   '--disable-pip-version-check', UV], log_file)
    return program


def sources():
    """Return every file our distribution is built from."""
    return stamps.tracked(*_BUILD_INPUTS)


def install_ours(state):
    """Install our own distribution, not editable, if it changed.

    A wheel puts ``nova/virt/clickos`` into Nova's own package, where Nova
    looks for it; an editable installation would not.
    """
    files = sources()
    wanted = stamps.digest([*files, _stamp(state)])
    stamp = state.venv / 'ours.stamp'
    if stamps.fresh(stamp, wanted):
        return
    log_file = state.log / 'venv.log'
    program = _uv(state, log_file)
    with log.step(f'our own Python packages ({DISTRIBUTION})'), \
            tempfile.TemporaryDirectory() as scratch:
        _copy(files, pathlib.Path(scratch))
        shell.run([program, 'pip', 'install', '--python',
                   state.tool('python'), '--no-deps', '--no-build-isolation',
                   '--reinstall', scratch], log_file,
                  env=version.environment())
        stamp.write_text(wanted)


def compile_modules(state):
    """Compile all modules but tests: no service may write next to them."""
    wanted = stamps.digest(state.venv / name for name in
                           ('requirements.stamp', 'ours.stamp'))
    stamp = state.venv / 'compiled.stamp'
    if stamps.fresh(stamp, wanted):
        return
    with log.step('byte code'):
        shell.run([state.tool('python'), '-m', 'compileall', '-q', '-j', '0',
                   '-x', '/(tests|tempest)/', state.venv / 'lib'],
                  state.log / 'venv.log')
        stamp.write_text(wanted)


def copy_sources(folder):
    """Copy what our distribution is built from."""
    _copy(sources(), folder)


def _copy(files, scratch):
    """Copy the sources, so that a build leaves nothing in the tree."""
    for path in files:
        target = scratch / path.relative_to(paths.REPO)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, target)
