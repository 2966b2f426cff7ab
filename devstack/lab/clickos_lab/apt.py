# SPDX-License-Identifier: Apache-2.0
"""Debian packages, installed without starting their services."""

import contextlib
import importlib.util
import os
import pathlib
import shutil
import subprocess
import sysconfig

from clickos_lab import errors
from clickos_lab import log
from clickos_lab import shell

#: What a process host, and two machines at its switch, need.
PROCESS_HOST_PACKAGES = ('gcc', 'libc6-dev', 'iproute2', 'iputils-ping',
                         'curl')
#: What the Xen host in QEMU needs of this machine.
XEN_PACKAGES = ('qemu-system-x86', 'openssh-client', 'binutils', 'gcc',
                'libc6-dev')
#: The tests of the dashboard drive this browser.
BROWSER_PACKAGES = ('chromium', 'chromium-driver', 'fonts-dejavu-core')
#: Neutron's DHCP and L3 agents run these; a test asks for an address.
NETWORK_PACKAGES = ('dnsmasq-base', 'dnsmasq-utils', 'iptables', 'conntrack',
                    'udhcpc')
#: It dumps databases.
BACKUP_PACKAGES = ('mariadb-client',)
#: The programs that judge the catalog's VNFs.
VNF_PACKAGES = ('iproute2', 'iputils-ping', 'tcpdump', 'curl', 'ethtool',
                'iperf3', 'bind9-dnsutils', 'dnsmasq-base', 'socat',
                'udhcpc', 'isc-dhcp-client', 'hping3', 'nfdump',
                'wireguard-go', 'wireguard-tools', 'rsyslog')
#: The other router of a pair of ours.
PAIR_PACKAGES = ('iproute2', 'iputils-ping', 'keepalived', 'procps')
#: The RADIUS server of the BRAS.
RADIUS_PACKAGES = ('iproute2', 'iputils-ping', 'ethtool', 'freeradius')
#: The core packages of MariaDB hold the programs without the service.
PACKAGES = (
    'rabbitmq-server', 'mariadb-server-core', 'mariadb-client-core',
    'memcached', 'nginx', 'curl', 'iproute2', 'iputils-ping', 'tcpdump',
    'strace', 'shellcheck', 'make', 'git', *XEN_PACKAGES)

_POLICY = pathlib.Path('/usr/sbin/policy-rc.d')
#: deb-policy 9.3.3: 101 means "action not allowed".
_POLICY_TEXT = '#!/bin/sh\n# temporary: clickos-lab\nexit 101\n'
_OPTIONS = ('-o', 'DPkg::Lock::Timeout=300', '-o', 'Dpkg::Use-Pty=0')
_ENV = {**os.environ, 'DEBIAN_FRONTEND': 'noninteractive', 'LC_ALL': 'C'}


def wanted():
    """Return the packages this machine needs, installed or not."""
    names = list(PACKAGES)
    include = pathlib.Path(sysconfig.get_config_var('INCLUDEPY'))
    if not (include / 'Python.h').exists():
        names.append('python3-dev')     # uWSGI comes as source only
    if importlib.util.find_spec('ensurepip') is None:
        names.append('python3-venv')
    return names


def installed(names):
    """Return which of the packages are installed."""
    done = subprocess.run(
        ['dpkg-query', '-W', '-f', '${Package} ${db:Status-Status}\n',
         *names], capture_output=True, text=True, env=_ENV)
    lines = (line.split() for line in done.stdout.splitlines())
    return {words[0] for words in lines if words[1:] == ['installed']}


def ensure(state, names=None):
    """Install what is missing; what was added is noted in the state.

    :param names: of packages, by default all this machine needs
    """
    names = names or wanted()
    missing = sorted(set(names) - installed(names))
    if not missing:
        return
    log_file = state.log / 'apt.log'
    with log.step(f'Debian packages: {" ".join(missing)}'):
        added = _added_by(missing, log_file)
        _note(state, added)
        with _services_stay_down():
            shell.run(['apt-get', *_OPTIONS, 'install', '-y',
                       '--no-install-recommends', *missing],
                      log_file, env=_ENV, timeout_s=900)
        _disable_units(added, log_file)
    still = sorted(set(names) - installed(names))
    if still:
        raise errors.LabError(
            f'not installed: {" ".join(still)}; see {log_file}')


def _added_by(missing, log_file):
    """Return every package the installation will add, dependencies too.

    The package lists are fetched only if they do not know a package, or
    know no version that can be downloaded.
    """
    try:
        return _simulate(missing)
    except errors.LabError:
        refresh(log_file)
        return _simulate(missing)


def refresh(log_file):
    """Fetch the package lists."""
    shell.run(['apt-get', *_OPTIONS, 'update'], log_file, env=_ENV)


def _simulate(missing):
    text = shell.output(['apt-get', '-s', 'install',
                         '--no-install-recommends', *missing], env=_ENV)
    return [line.split()[1] for line in text.splitlines()
            if line.startswith('Inst ')]


def _note(state, added):
    known = noted(state)
    state.packages.write_text(
        ''.join(f'{name}\n' for name in sorted({*known, *added})))


def noted(state):
    """Return the packages the lab has added to this machine."""
    if not state.packages.exists():
        return []
    return state.packages.read_text().split()


@contextlib.contextmanager
def _services_stay_down():
    """Forbid maintainer scripts to start services; an own policy stays."""
    if _POLICY.exists() and _POLICY.read_text() != _POLICY_TEXT:
        yield
        return
    try:
        _POLICY.write_text(_POLICY_TEXT)
        _POLICY.chmod(0o755)
        yield
    finally:
        _POLICY.unlink(missing_ok=True)


def _disable_units(added, log_file):
    """Keep services of new packages from starting at the next boot."""
    if shutil.which('systemctl') is None:
        return
    listed = subprocess.run(['dpkg-query', '-L', *added],
                            capture_output=True, text=True, env=_ENV)
    units = {pathlib.PurePath(path).name
             for path in listed.stdout.splitlines()
             if '/systemd/system/' in path
             and path.endswith(('.service', '.socket')) and '@' not in path}
    if units:
        subprocess.run(['systemctl', 'disable', '--quiet', *sorted(units)],
                       stdin=subprocess.DEVNULL, capture_output=True)
        with open(log_file, 'a') as f:
            f.write(f'not started at boot: {" ".join(sorted(units))}\n')
