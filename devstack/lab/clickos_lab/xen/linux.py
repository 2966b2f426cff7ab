# SPDX-License-Identifier: Apache-2.0
"""A Linux guest: Debian's kernel, busybox and our network driver."""

import shlex
import shutil

from clickos_lab import apt
from clickos_lab import paths
from clickos_lab import shell
from clickos_lab.xen import archive
from clickos_lab.xen import modules
from clickos_lab.xen import packages

#: Where dom0 has the kernel and the initramfs.
KERNEL, INITRD = '/root/linux', '/root/linux.cpio'
#: of the guest, for its traffic and its counters
NET = '/bin/guest-net'

_SOURCE = paths.REPO / 'xen-patches/linux-6.1/vale-front'
#: of the programs in C
FOLDER = paths.REPO / 'devstack/lab/clickos_lab/xen'
_COMMANDS = ('sh', 'mount', 'insmod', 'ifconfig', 'nc', 'cat', 'sleep',
             'ping')
#: eth0 is the device on valed's ring, because its driver comes first: netfront
#: would take all vifs. eth1 is the stock device, through which a shell takes
#: scripts. The kernel's command line gives both addresses. dummy0 drops all.
_INIT = """\
#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
mount -t devtmpfs dev /dev
mount -t proc proc /proc
mount -t sysfs sysfs /sys
for module in {modules}; do insmod "/$module"; done
ifconfig lo 127.0.0.1
ifconfig dummy0 up
ifconfig eth0 "$vale" netmask 255.255.255.0
ifconfig eth1 "$stock" netmask 255.255.255.0
echo "guest: ready"
while :; do nc -l -p 8 -e sh; done &
while :; do nc -l -p 7 -e cat; done
"""
#: Native, as Xen chooses for a processor whose counter is invariant. QEMU's is
#: not, and then each look at the clock would be 5,000 instructions in Xen.
_CONFIG = """\
name = "{name}"
type = "pvh"
kernel = "{kernel}"
ramdisk = "{initrd}"
cmdline = "console=hvc0 rdinit=/init mitigations=off cryptomgr.notests {words}"
memory = {memory_mib}
vcpus = {vcpus}
tsc_mode = "native"
on_reboot = "destroy"
vif = [{vifs}]
"""
#: The guest's nc waits for one script after the other.
_RUN = """
for _ in $(seq 100); do
    printf %s {script} | ip netns exec {namespace} nc {address} 8 && exit 0
    sleep 0.1
done
exit 1
"""


def build(state, places):
    """Build driver and program against the headers of the kernel's package.
    """
    release = modules.folder(places).name
    apt.ensure(state, ('gcc', 'make', f'linux-headers-{release}'))
    folder = places.build / _SOURCE.name
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(_SOURCE, folder)
    log = state.log / 'vale-front.log'
    shell.run(['make', f'KDIR=/usr/src/linux-headers-{release}'], log,
              cwd=folder)
    shell.run(['strip', '--strip-debug', folder / 'vale-front.ko'], log)
    shell.run(['gcc', '-std=gnu11', '-O2', '-Wall', '-Wextra', '-Werror',
               '-static', '-s', FOLDER / 'guest_net.c', '-o',
               program(places)], log)


def program(places):
    """Return guest-net, which runs in dom0, too."""
    return places.build / _SOURCE.name / 'guest-net'


def add(places, contents, netfront=None):
    """Add the guest's kernel and initramfs to what is in dom0.

    :param netfront: a module that replaces the kernel's
    """
    folder = places.build / _SOURCE.name
    drivers = [folder / 'vale-front.ko',
               *modules.closure(places, ['xen-netfront', 'dummy'])]
    if netfront:
        drivers = [netfront if path.name == netfront.name else path
                   for path in drivers]
    root = archive.Archive()
    for name in ('dev', 'proc', 'sys'):
        root.add_folder(name)
    add_system(places, root, drivers, _COMMANDS)
    root.add_file(NET.lstrip('/'), program(places))
    names = ' '.join(path.name for path in drivers)
    root.add_bytes('init', _INIT.format(modules=names).encode(), 0o755)
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


def config(name, vale, stock, vifs, memory_mib=256, vcpus=1):
    """Return an xl configuration.

    :param vale: the address of its device on valed's ring
    :param stock: of its stock device
    :param vifs: texts of its vifs
    """
    return _CONFIG.format(
        name=name, kernel=KERNEL, initrd=INITRD, memory_mib=memory_mib,
        vcpus=vcpus, words=f'vale={vale} stock={stock}',
        vifs=', '.join(f'"{vif}"' for vif in vifs))


def run(dom0, namespace, stock, script, timeout_s=120):
    """Run a script in a guest; return its output.

    :param namespace: of dom0, from which the guest's stock device is reached
    """
    return dom0.check(_RUN.format(script=shlex.quote(script),
                                  namespace=namespace, address=stock),
                      timeout_s=timeout_s)
