# SPDX-License-Identifier: Apache-2.0
"""A driver domain: Linux with valed, and the ports that domain 0 asks for."""

import shlex

from clickos_lab import shell
from clickos_lab.xen import archive
from clickos_lab.xen import libraries
from clickos_lab.xen import linux
from clickos_lab.xen import modules
from clickos_lab.xen import toolstack

#: Its address on a stock vif; dom0's endpoint ``a`` talks to it.
ADDRESS = '10.1.0.9'
NAME = 'driver'

_CONFIG, _INITRD = f'/root/{NAME}.cfg', f'/root/{NAME}.cpio'
_DOMAIN = f"""\
name = "{NAME}"
type = "pvh"
kernel = "{linux.KERNEL}"
ramdisk = "{_INITRD}"
cmdline = "console=hvc0 rdinit=/init mitigations=off cryptomgr.notests"
memory = 256
vcpus = 1
driver_domain = 1
on_reboot = "destroy"
vif = ["bridge=br0"]
"""
_DRIVERS = ('xen-evtchn', 'xen-gntdev', 'xen-netfront')
_APPLETS = ('sh', 'mount', 'mkdir', 'insmod', 'ifconfig', 'nc', 'cat',
            'sleep', 'kill', 'pidof', 'true')
_PROGRAMS = ('valed', 'vale-ctl')
_SOCKET, _STORE = '/run/valed.sock', '/dev/xen/xenbus'
_VALED = f'socket = "{_SOCKET}"\nxenstore = "{_STORE}"\n'
_INIT = f"""\
#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t devtmpfs devtmpfs /dev
for module in {{modules}}; do insmod "/$module"; done
ifconfig lo 127.0.0.1
ifconfig eth0 {ADDRESS} netmask 255.255.255.0
while :; do valed --config /valed.toml 2>>/run/valed.log; sleep 1; done &
vale-ctl --socket {_SOCKET} --xenstore {_STORE} \\
    driver-domain 2>>/run/vale-ctl.log &
while :; do nc -l -p 7 -e sh; done
"""


def add(state, places, contents):
    """Add the domain to what is in dom0, and dom0's vale-ctl."""
    contents.add(_stripped(state, places, 'vale-ctl'),
                 f'{toolstack.FOLDER}/vale-ctl', 0o755)
    drivers = modules.closure(places, _DRIVERS)
    root = archive.Archive()
    for name in ('dev', 'proc', 'run', 'sys'):
        root.add_folder(name)
    linux.add_system(places, root, drivers, _APPLETS)
    _add_programs(state, places, root)
    root.add_bytes('valed.toml', _VALED.encode())
    names = ' '.join(path.name for path in drivers)
    root.add_bytes('init', _INIT.format(modules=names).encode(), 0o755)
    written = places.build / f'{NAME}.cpio'
    root.write(written)
    contents.add(written, _INITRD)
    contents.add(places.kernel, linux.KERNEL)
    contents.add_text(_DOMAIN, _CONFIG)


def _add_programs(state, places, root):
    """Add the programs and the libraries that they need."""
    for link in ('lib', 'lib64'):
        root.add_link(link, f'usr/{link}')
    built = [_stripped(state, places, name) for name in _PROGRAMS]
    for path in built:
        root.add_file(f'bin/{path.name}', path)
    for library in libraries.closure(places, built):
        name = library.removeprefix(f'{places.packages}/').lstrip('/')
        root.add_file(name if name.startswith('usr/') else f'usr/{name}',
                      places.root / library)


def _stripped(state, places, name):
    """Return a copy of a program without its symbols."""
    folder = places.build / NAME
    folder.mkdir(exist_ok=True)
    shell.run(['strip', '-o', folder / name, toolstack.built(state, name)],
              state.log / 'driver.log')
    return folder / name


def create(dom0):
    """Create it; return its number. It answers some seconds later."""
    dom0.check(f'xl create -q -e {_CONFIG}', timeout_s=300)
    return int(dom0.check(f'xl domid {NAME}'))


def command(line):
    """Return a command for dom0 that runs a line in the domain.

    The domain does not listen between two commands.
    """
    return f'for n in 1 2 3 4 5; do echo {shlex.quote(line + " 2>&1")} | ' \
        f'ip netns exec a nc -w 5 {ADDRESS} 7 && exit; sleep 0.2; done; exit 1'


def vale_ctl(arguments):
    """Return the line that asks its valed."""
    return f'vale-ctl --socket {_SOCKET} {arguments}'
