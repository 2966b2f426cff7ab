# SPDX-License-Identifier: Apache-2.0
"""Kernel modules with what they depend on."""

import pathlib
import subprocess

from clickos_lab import errors
from clickos_lab import shell
from clickos_lab.xen import libraries
from clickos_lab.xen import packages


def folder(places):
    """Return the folder of the kernel's modules."""
    return packages.find_one(places, 'lib/modules/*')


def index(places):
    """Write modules.dep and the like: Debian's package has none."""
    log = places.log / 'xen-packages.log'
    release = folder(places).name
    kmod = packages.find(places, 'usr/bin/kmod')
    with open(log, 'ab') as output:
        done = subprocess.run(
            ['depmod', '-b', places.packages, release], executable=kmod,
            env=libraries.environment(places), stdin=subprocess.DEVNULL,
            stdout=output, stderr=subprocess.STDOUT, timeout=120)
    if done.returncode:
        raise errors.LabError(f'depmod failed; see {log}:\n'
                              + shell.tail(log))


def closure(places, names):
    """Return the modules' files and those they need.

    :raises LabError: if there is no module of a name
    """
    needs = _parse((folder(places) / 'modules.dep').read_text())
    by_name = {_name(path): path for path in needs}
    unknown = [n for n in names if _name(n) not in by_name]
    if unknown:
        raise errors.LabError(f'{" ".join(unknown)}: no such kernel module')
    found = set()
    for path in (by_name[_name(n)] for n in names):
        found |= {path, *needs[path]}
    return sorted(folder(places) / path for path in found)


def _parse(text):
    """Read modules.dep: it lists all a module needs, indirectly too."""
    lines = (line.partition(':') for line in text.splitlines())
    return {path: rest.split() for path, _, rest in lines}


def _name(path):
    return pathlib.PurePath(path).name.partition('.')[0].replace('-', '_')
