# SPDX-License-Identifier: Apache-2.0
"""The shared libraries programs need, from the packages or this machine."""

import os
import re

from clickos_lab import debian
from clickos_lab import errors
from clickos_lab import shell

TRIPLE = 'x86_64-linux-gnu'
_FOLDERS = (f'usr/lib/{TRIPLE}', f'lib/{TRIPLE}',
            f'usr/lib/xen-{debian.here().xen}/lib/{TRIPLE}')
#: Loaded when a thread is canceled; without it xl aborts.
_LOADED_LATE = f'/lib/{TRIPLE}/libgcc_s.so.1'
_LINE = re.compile(r'^\t(?:\S+ => )?(/\S+) \(0x', re.MULTILINE)


def environment(places):
    """Return an environment in which programs find the packages' libraries.
    """
    path = ':'.join(str(places.packages / f) for f in _FOLDERS)
    return {**os.environ, 'LD_LIBRARY_PATH': path, 'LC_ALL': 'C'}


def closure(places, programs):
    """Return the libraries of programs; static programs have none.

    :raises LabError: naming a library that is nowhere
    """
    found = {_LOADED_LATE}
    for program in programs:
        text = _ldd(places, program)
        if 'not found' in text:
            missing = re.findall(r'(\S+) => not found', text)
            raise errors.LabError(f'{program}: needs {" ".join(missing)}, '
                                  'which none of the Debian packages has')
        found |= set(_LINE.findall(text))
    return sorted(found)


def _ldd(places, program):
    try:
        return shell.output(['ldd', program], env=environment(places))
    except errors.LabError as e:
        if 'not a dynamic executable' in str(e):
            return ''
        raise
