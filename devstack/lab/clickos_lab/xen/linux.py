# SPDX-License-Identifier: Apache-2.0
"""A Linux guest: Debian's kernel, busybox and our network driver."""

import shutil

from clickos_lab import apt
from clickos_lab import paths
from clickos_lab import shell
from clickos_lab.xen import archive
from clickos_lab.xen import modules
from clickos_lab.xen import packages

#: Where dom0 has the kernel and the initramfs.
KERNEL, INITRD = '/root/linux', '/root/linux.cpio'

_SOURCE = paths.REPO / 'xen-patches/linux-6.1/vale-front'
#: eth0 is the device on valed's ring, because its driver comes first: netfront
#: would take all vifs. eth1 is the stock device.
_INIT = """\
#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
mount -t proc proc /proc
mount -t sysfs sysfs /sys
for module in {modules}; do insmod "/$module"; done
ifconfig lo 127.0.0.1
ifconfig eth0 {vale} netmask 255.255.255.0
ifconfig eth1 {stock} netmask 255.255.255.0
echo "guest: ready"
while :; do nc -l -p 7 -e cat; done
"""


def build(state, places):
    """Build the driver against the headers of the kernel's package."""
    release = modules.folder(places).name
    apt.ensure(state, ('gcc', 'make', f'linux-headers-{release}'))
    folder = places.build / _SOURCE.name
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(_SOURCE, folder)
    shell.run(['make', f'KDIR=/usr/src/linux-headers-{release}'],
              state.log / 'vale-front.log', cwd=folder)
    shell.run(['strip', '--strip-debug', folder / 'vale-front.ko'],
              state.log / 'vale-front.log')


def add(places, contents, stock, vale):
    """Add the guest to what is in dom0.

    :param stock: the address of its stock device
    :param vale: of the other one
    """
    drivers = [places.build / _SOURCE.name / 'vale-front.ko',
               *modules.closure(places, ['xen-netfront'])]
    root = archive.Archive()
    for name in ('dev', 'proc', 'sys'):
        root.add_folder(name)
    add_system(places, root, drivers,
               ('sh', 'mount', 'insmod', 'ifconfig', 'nc', 'cat'))
    names = ' '.join(path.name for path in drivers)
    root.add_bytes('init', _INIT.format(
        modules=names, stock=stock, vale=vale).encode(), 0o755)
    written = places.build / 'linux.cpio'
    root.write(written)
    contents.add(written, INITRD)
    # Unpacked: in emulation xl needs a minute for a compressed one.
    contents.add(places.kernel, KERNEL)


def add_system(places, root, drivers, programs):
    """Add busybox's programs and kernel modules to a guest's root."""
    busybox = packages.find(places, 'usr/bin/busybox')
    root.add_file('bin/busybox', busybox)
    for name in programs:
        root.add_link(f'bin/{name}', 'busybox')
    for path in drivers:
        root.add_file(path.name, path)
