# SPDX-License-Identifier: Apache-2.0
"""Debian packages that are unpacked, never installed.

Installed, the hypervisor would become an entry of this machine's boot menu.
"""

import re
import shutil

from clickos_lab import apt
from clickos_lab import debian
from clickos_lab import errors
from clickos_lab import log
from clickos_lab import shell
from clickos_lab import stamps

_DEBIAN = debian.here()
_XEN = (
    f'xen-hypervisor-{_DEBIAN.xen}-amd64', f'xen-utils-{_DEBIAN.xen}',
    'xen-utils-common',
    'xenstore-utils', 'libxen-dev', 'libxencall1', 'libxendevicemodel1',
    'libxenevtchn1', 'libxenforeignmemory1', 'libxengnttab1', 'libxenhypfs1',
    f'libxenmisc{_DEBIAN.xen}', 'libxenstore4', 'libxentoolcore1',
    'libxentoollog1', 'libyajl2', 'libfdt1')
_SYSTEM = (
    'busybox-static', 'bash', 'libtinfo6', 'kmod', 'libkmod2', 'libssl3',
    'iproute2', 'libmnl0', 'libbpf1', 'libelf1', 'libxtables12',
    'libcap2', 'iputils-ping', 'tcpdump', 'libpcap0.8', 'libdbus-1-3',
    'iperf3', 'libiperf0', 'libsctp1', 'openssh-server', 'libwrap0',
    'openssh-sftp-server', 'ppp')
#: Libraries of those above that a small Debian does not have; what every
#: Debian has (libc6, libselinux1 and so on) is taken from this machine.
_LIBRARIES = (
    'libncurses6', 'libbsd0', 'libmd0', 'libidn2-0', 'libunistring2',
    'libnsl2', 'libtirpc3', 'libgssapi-krb5-2', 'libk5crypto3', 'libkrb5-3',
    'libkrb5support0', 'libkeyutils1', 'libcom-err2')
_SWITCH = (
    'openvswitch-switch', 'openvswitch-common', 'libunbound8', 'libnuma1',
    'libevent-2.1-7', 'libxdp1', 'libcap-ng0', 'libhogweed6', 'libnettle8')
_KERNEL = 'linux-image-amd64'
#: What Debian 13 calls otherwise, and what its OpenSSH needs besides.
_RENAMED_13 = {
    'libunistring2': 'libunistring5',
    **{name: f'{name}t64' for name in (
        'libelf1', 'libevent-2.1-7', 'libhogweed6', 'libnettle8',
        'libpcap0.8', 'libssl3', 'libtirpc3')}}
_MORE_13 = ('libwtmpdb0', 'libsqlite3-0')


def ensure(places):
    """Download and unpack them; they stay until the list here changes."""
    stamp = places.packages / 'packages.stamp'
    wanted = stamps.digest((), *_names())
    if stamps.fresh(stamp, wanted):
        return
    with log.step('Debian packages of the Xen host'):
        _fetch(places)
    stamp.write_text(wanted)


def _names():
    names = (*_XEN, *_SYSTEM, *_LIBRARIES, *_SWITCH, _KERNEL)
    if _DEBIAN.number != '13':
        return names
    return *(_RENAMED_13.get(name, name) for name in names), *_MORE_13


def _fetch(places):
    shutil.rmtree(places.packages, ignore_errors=True)
    debs = places.packages / 'debs'
    debs.mkdir(parents=True)
    log_file = places.log / 'xen-packages.log'
    try:
        _download(debs, log_file)
    except errors.LabError:
        apt.refresh(log_file)        # Debian may have newer packages by now
        _download(debs, log_file)
    for deb in sorted(debs.iterdir()):
        shell.run(['dpkg-deb', '-x', deb, places.packages], log_file)
    shutil.rmtree(debs)


def _download(folder, log_file):
    names = [_kernel_package() if name == _KERNEL else name
             for name in _names()]
    # apt's own user may not be able to write there; root may.
    shell.run(['apt-get', '-q', '-o', 'APT::Sandbox::User=root', 'download',
               *names], log_file, cwd=folder)


def _kernel_package():
    """Return the package the newest kernel is in: its name has a version."""
    text = shell.output(['apt-cache', 'depends', _KERNEL])
    found = re.search(r'Depends: (linux-image-\S+)', text)
    if not found:
        raise errors.LabError(f'{_KERNEL}: apt does not know its kernel')
    return found[1]


def find(places, name):
    """Return a file of the packages; ``name`` begins with ``usr/``.

    :raises LabError: if there is none
    """
    for candidate in (name, name.removeprefix('usr/')):
        path = places.packages / candidate
        if path.exists():
            return path
    raise errors.LabError(f'{name}: in none of the unpacked Debian packages')


def find_one(places, pattern):
    """Return the only file of the packages that matches a pattern."""
    found = list(places.packages.glob(pattern))
    if len(found) != 1:
        raise errors.LabError(f'{pattern}: {len(found)} files of the unpacked '
                              'Debian packages, expected 1')
    return found[0]
