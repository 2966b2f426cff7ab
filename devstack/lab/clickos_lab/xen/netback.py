# SPDX-License-Identifier: Apache-2.0
"""netback and netfront, built from Debian's kernel source and our patches."""

import shutil

from clickos_lab import apt
from clickos_lab import paths
from clickos_lab import shell
from clickos_lab.xen import modules

SERIES = paths.REPO / 'xen-patches/linux-6.1'
#: Where dom0 has the module.
MODULE = '/root/xen-netback.ko'

#: The hotplug script of vifs whose packets valed moves.
SCRIPT = SERIES / 'netback/vif-vale'
_PATCHES_OF = 'xen-netback'
_PACKAGES = ('gcc', 'make', 'patch', 'xz-utils', 'linux-source-6.1')


def names():
    """Return the names of the patches of netback, in their order."""
    lines = (SERIES / 'series').read_text().splitlines()
    return [line for line in lines if _PATCHES_OF in line]


def packages(places):
    """Return the packages that a build needs."""
    return (*_PACKAGES, f'linux-headers-{modules.folder(places).name}')


def build(state, places):
    """Apply the series to the source of netback, and build the module."""
    _build(state, places, 'netback', 'drivers/net/xen-netback')


def build_front(state, places):
    """The same for netfront; return the module."""
    return _build(state, places, 'netfront', 'netfront')


def _build(state, places, name, inner):
    release = modules.folder(places).name
    apt.ensure(state, packages(places))
    log = state.log / f'{name}.log'
    folder = places.build / name
    shell.run(['make', '-C', SERIES / name, f'BUILD={folder}',
               f'KDIR=/usr/src/linux-headers-{release}'], log)
    module = folder / f'xen-{name}.ko'
    shutil.copy(folder / inner / module.name, folder)
    shell.run(['strip', '--strip-debug', module], log)
    return module


def tree(places):
    """Return the folder of the patched source."""
    return places.build / 'netback/drivers/net/xen-netback'


def module(places):
    """Return the module that was built."""
    return places.build / 'netback/xen-netback.ko'


def place(places):
    """Return the name of Debian's module in a root."""
    return f'usr/lib/modules/{modules.folder(places).name}/' \
        'kernel/drivers/net/xen-netback/xen-netback.ko'


def add(places, contents):
    """Add the module and its hotplug script to what is in dom0."""
    contents.add(module(places), MODULE)
    contents.add(SCRIPT, '/etc/xen/scripts/vif-vale', 0o755)
