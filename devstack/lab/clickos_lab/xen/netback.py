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

_SOURCE = SERIES / 'netback'
_PACKAGES = ('gcc', 'make', 'patch', 'xz-utils', 'linux-source-6.1')


def build(state, places):
    """Apply the series to the source of netback, and build the module."""
    _build(state, places, 'netback', 'drivers/net/xen-netback')


def build_front(state, places):
    """The same for netfront; return the module."""
    return _build(state, places, 'netfront', 'netfront')


def _build(state, places, name, inner):
    release = modules.folder(places).name
    apt.ensure(state, (*_PACKAGES, f'linux-headers-{release}'))
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


def add(places, contents):
    """Add the module and its hotplug script to what is in dom0."""
    contents.add(places.build / 'netback/xen-netback.ko', MODULE)
    contents.add(_SOURCE / 'vif-vale', '/etc/xen/scripts/vif-vale', 0o755)
