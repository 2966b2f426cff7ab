# SPDX-License-Identifier: Apache-2.0
"""dom0's root, an initramfs: a few programs, no init system."""

import subprocess

from clickos_lab import debian
from clickos_lab import paths
from clickos_lab.xen import archive as _archive
from clickos_lab.xen import keys
from clickos_lab.xen import libraries
from clickos_lab.xen import modules
from clickos_lab.xen import packages

#: Our own files, laid over the root.
OVERLAY = paths.REPO / 'devstack/lab/dom0'

_XEN_BIN = f'usr/lib/xen-{debian.here().xen}/bin'
_PROGRAMS = (
    *(f'{_XEN_BIN}/{name}' for name in (
        'xl', 'oxenstored', 'xenstored', 'xenconsoled', 'xenconsole',
        'xen-init-dom0', 'libxl-save-helper', 'xentop', 'xenstore-control',
        'lsevtchn', 'xen-hvmcrash')),
    *(f'usr/bin/{name}' for name in (
        'xenstore', 'bash', 'kmod', 'ip', 'ss', 'ping', 'tcpdump', 'iperf3',
        'ovs-vsctl', 'ovs-appctl', 'ovs-ofctl', 'ovsdb-tool')),
    *(f'usr/sbin/{name}' for name in (
        'bridge', 'tc', 'sshd', 'ovsdb-server')),
    'usr/lib/openvswitch-switch/ovs-vswitchd',
    'usr/lib/openssh/sftp-server', 'usr/sbin/pppd')
#: Programs whose place or presence differs between releases of Debian.
_PATTERNS = ('usr/lib/pppd/*/pppoe.so', 'usr/lib/openssh/sshd-*')
#: link: where it points to
_LINKS = {
    **{name: f'usr/{name}' for name in ('bin', 'sbin', 'lib', 'lib64')},
    **{f'usr/bin/xenstore-{verb}': 'xenstore' for verb in (
        'chmod', 'exists', 'list', 'ls', 'read', 'rm', 'watch', 'write')},
    **{f'usr/sbin/{name}': f'/{_XEN_BIN}/{name}' for name in (
        'xl', 'xentop', 'oxenstored', 'xenstored', 'xenconsoled',
        'xen-init-dom0', 'xen-hvmcrash', 'xenstore-control')},
    **{f'usr/sbin/{name}': '../bin/kmod' for name in (
        'modprobe', 'insmod', 'rmmod', 'lsmod', 'depmod')},
    # busybox's own shell would prefer its ip, modprobe and so on to ours.
    'usr/bin/sh': 'bash',
    'usr/sbin/ovs-vswitchd': '../lib/openvswitch-switch/ovs-vswitchd',
    'var/run': '/run'}
_FOLDERS = ('dev', 'etc/ppp', 'proc', 'run', 'sys', 'tmp', 'usr/lib64',
            'var/lib', 'var/log')
_MODULES = (
    'virtio_pci', 'virtio_net', 'virtio_blk', 'xen-evtchn', 'xen-gntdev',
    'xen-gntalloc', 'xen-privcmd', 'xenfs', 'xen-netback', 'bridge',
    'openvswitch', 'tun', 'veth', 'dummy', '8021q', 'crc32c_generic',
    'pppoe')
_MODULE_INDEX = ('modules.dep', 'modules.dep.bin', 'modules.alias.bin',
                 'modules.builtin', 'modules.builtin.bin')
_TEXTS = {
    # The one of busybox, because it starts faster: it runs each command.
    'etc/passwd': 'root:x:0:0:root:/root:/bin/ash\n'
                  'sshd:x:100:100:sshd:/run/sshd:/bin/false\n'
                  + ''.join(f'{name}:x:{uid}:{uid}::/:/bin/false\n'
                            for name, uid in keys.USERS.items()),
    'etc/group': 'root:x:0:\nsshd:x:100:\n',
    'etc/shells': '/bin/ash\n',
    'etc/hosts': '127.0.0.1 localhost dom0\n'}


def build(places):
    """Write the archive."""
    modules.index(places)
    archive = _archive.Archive()
    for name in _FOLDERS:
        archive.add_folder(name)
    for name, text in _TEXTS.items():
        archive.add_bytes(name, text.encode())
    _add_busybox(places, archive)
    _add_programs(places, archive)
    for name, target in _LINKS.items():
        archive.add_link(name, target)
    _add_modules(places, archive)
    _add_configuration(places, archive)
    archive.write(places.initrd)


def _add_busybox(places, archive):
    """For everything that is not given as a program of its own."""
    busybox = packages.find(places, 'usr/bin/busybox')
    archive.add_file('usr/bin/busybox', busybox)
    listed = subprocess.run([busybox, '--list'], capture_output=True,
                            text=True, check=True, timeout=60)
    for name in listed.stdout.split():
        if name != 'busybox':
            archive.add_link(f'usr/bin/{name}', 'busybox')


def _add_programs(places, archive):
    found = {name: packages.find(places, name) for name in _PROGRAMS}
    found.update({str(path.relative_to(places.packages)): path
                  for pattern in _PATTERNS
                  for path in places.packages.glob(pattern)
                  if not path.is_symlink()})
    for name, path in found.items():
        archive.add_file(name, path)
    for library in libraries.closure(places, found.values()):
        archive.add_file(_inside(places, library), places.root / library)


def _inside(places, path):
    """Return where a file of the packages or this machine lies in dom0."""
    name = path.removeprefix(f'{places.packages}/').lstrip('/')
    return name if name.startswith('usr/') else f'usr/{name}'


def _add_modules(places, archive):
    folder = modules.folder(places)
    files = [folder / name for name in _MODULE_INDEX]
    files += modules.closure(places, _MODULES)
    for path in files:
        archive.add_file(f'usr/lib/modules/{folder.name}/'
                         f'{path.relative_to(folder)}', path)


def _add_configuration(places, archive):
    archive.add_tree('etc/xen', places.packages / 'etc/xen')
    archive.add_file(
        'usr/share/openvswitch/vswitch.ovsschema',
        places.packages / 'usr/share/openvswitch/vswitch.ovsschema')
    keys.add(places, archive)
    archive.add_tree('', OVERLAY)
