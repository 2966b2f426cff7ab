# SPDX-License-Identifier: Apache-2.0
"""netback, built from Debian's kernel source and our patches."""

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
    release = modules.folder(places).name
    apt.ensure(state, (*_PACKAGES, f'linux-headers-{release}'))
    log = state.log / 'netback.log'
    folder = _folder(places)
    shell.run(['make', '-C', _SOURCE, f'BUILD={folder}',
               f'KDIR=/usr/src/linux-headers-{release}'], log)
    shutil.copy(tree(places) / 'xen-netback.ko', folder)
    shell.run(['strip', '--strip-debug', folder / 'xen-netback.ko'], log)


def _folder(places):
    return places.build / 'netback'


def tree(places):
    """Return the folder of the patched source."""
    return _folder(places) / 'drivers/net/xen-netback'


def add(places, contents):
    """Add the module and its hotplug script to what is in dom0."""
    contents.add(_folder(places) / 'xen-netback.ko', MODULE)
    contents.add(_SOURCE / 'vif-vale', '/etc/xen/scripts/vif-vale', 0o755)
