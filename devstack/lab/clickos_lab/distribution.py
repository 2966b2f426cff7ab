# SPDX-License-Identifier: Apache-2.0
"""The wheel and the source archive of our Python packages."""

import pathlib
import tempfile

from clickos_lab import shell
from clickos_lab import venv
from clickos_lab import version


def wheel(state, folder):
    """Build the wheel from this tree into a folder; return its path."""
    with tempfile.TemporaryDirectory() as scratch:
        venv.copy_sources(pathlib.Path(scratch))
        return build(state, '--wheel', scratch, folder, version.environment())


def sdist(state, folder):
    """Build the source archive from this tree into a folder; return it."""
    with tempfile.TemporaryDirectory() as scratch:
        venv.copy_sources(pathlib.Path(scratch))
        return build(state, '--sdist', scratch, folder, version.environment())


def build(state, kind, source, folder, env):
    """Build a folder of sources, or a source archive, without a network.

    :param kind: ``--wheel`` or ``--sdist``
    :returns: the path of what was built, the only one in the folder
    """
    pattern = {'--wheel': '*.whl', '--sdist': '*.tar.gz'}[kind]
    shell.run([venv.uv(state), 'build', kind, '--quiet', '--python',
               state.tool('python'), '--no-build-isolation', '--out-dir',
               folder, source], state.log / 'distribution.log', env=env)
    (folder / '.gitignore').unlink(missing_ok=True)
    (built,) = folder.glob(pattern)
    return built
