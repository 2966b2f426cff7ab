# SPDX-License-Identifier: Apache-2.0
"""The release of OpenStack that the lab runs: ``CLICKOS_OPENSTACK``."""

import os
import pathlib

from clickos_lab import errors

_FOLDER = pathlib.Path(__file__).parents[1]
#: The pins of each release, the oldest first.
PINS = {'2026.1': _FOLDER / 'requirements-2026.1.txt',
        '2026.2': _FOLDER / 'requirements.txt'}
DEFAULT = '2026.2'


def release():
    """Return the release that is asked for.

    :raises LabError: if it is not one of :data:`PINS`
    """
    name = os.environ.get('CLICKOS_OPENSTACK') or DEFAULT
    if name not in PINS:
        raise errors.LabError(f'OPENSTACK={name}: no such release, expected '
                              f'one of {", ".join(PINS)}')
    return name


def requirements():
    """Return the file that pins all packages of the release."""
    return PINS[release()]


def require_readable(state):
    """Refuse data of a later release, whose tables this one cannot read.

    :raises LabError: naming both releases and the cure
    """
    kept = _note(state).read_text() if _note(state).exists() else release()
    if list(PINS).index(kept) > list(PINS).index(release()):
        raise errors.LabError(
            f'{state.data}: data of OpenStack {kept}, which {release()} '
            'cannot read; choose that release, or run make lab-down and '
            'remove the folder')


def note(state):
    """Note that the data are of this release from now on."""
    _note(state).write_text(release())


def _note(state):
    return state.data / 'openstack'
