# SPDX-License-Identifier: Apache-2.0
"""The packages in a fresh Debian: install, run, upgrade, remove, purge.

``CLICKOS_PACKAGES`` names two folders with packages, the older one first,
``CLICKOS_DEBIAN`` the release of Debian, and ``CLICKOS_NOXEN`` the folder of
its xenstored.
"""

import os
import pathlib
import shutil
import subprocess
import tomllib
import unittest

from clickos_lab import bounds
from clickos_lab import debian
from clickos_lab import debian_root
from clickos_lab import debs
from clickos_lab import paths
from tests.packages import stream

_CONFIGURATION = '/etc/clickos/cosmosd.toml'
_UNITS = ('valed', 'cosmosd', 'clickos-agent')
#: A host of processes: Debian's xenstored runs without a hypervisor.
_STORE = 'systemd-run --unit=store /opt/noxen/xenstored.sh /opt/noxen ' \
    '/run/clickos/store'
_NAMES = [f'clickos-{name}' for name in debs.NAMES]


class PackagesTest(unittest.TestCase):

    def setUp(self):
        super().setUp()
        self.state = paths.State()
        older, newer = map(pathlib.Path,
                           os.environ['CLICKOS_PACKAGES'].split(':'))
        self.older, self.newer = _Release(older), _Release(newer)
        self.machine = self.enterContext(debian_root.DebianRoot(
            self.state, self.state.root / 'packages/root',
            debian.RELEASES[os.environ['CLICKOS_DEBIAN']]))

    def test_a_fresh_installation(self):
        self.install(self.newer)
        self.start()
        self.forward()
        self.remove()

    def test_life_of_an_installation(self):
        self.install(self.older)
        self.start()
        self.guest_forwards_through_an_upgrade()
        self.remove()

    def run_there(self, script):
        return self.machine.run(script)

    def pid(self, unit):
        return self.run_there(f'systemctl show -p MainPID --value {unit}')

    def program(self, unit):
        return self.run_there(f'readlink /proc/{self.pid(unit)}/exe')

    def install(self, release):
        self.run_there('useradd --system nova')
        self.machine.install(release.packages)
        self.assert_installed(release)
        verified = self.run_there(
            'systemd-analyze verify '
            + ' '.join(f'{unit}.service' for unit in _UNITS) + ' 2>&1')
        self.assertEqual('', verified)
        for unit in _UNITS:
            self.assertEqual('disabled', self.machine.run(
                f'systemctl is-enabled {unit}', check=False))
        self.assertEqual('600 root root', self.run_there(
            f'stat -c "%a %U %G" {_CONFIGURATION}'))
        self.assertEqual('640 root clickos-agent', self.run_there(
            'stat -c "%a %U %G" /etc/clickos/clickos-agent.conf'))
        roles = tomllib.loads(self.run_there(f'cat {_CONFIGURATION}'))['roles']
        self.assertEqual(
            {'nova': [int(self.run_there('id -u nova'))],
             'agent': [int(self.run_there('id -u clickos-agent'))],
             'operator': []}, roles)
        self.assertIn('usage: clickos-agent', self.run_there(
            'clickos-agent --help'))

    def assert_installed(self, release):
        """All packages and programs are of one version."""
        self.assertEqual(
            {release.version}, set(self.run_there(
                f'dpkg-query -W -f "\\${{Version}}\\n" {" ".join(_NAMES)}'
            ).splitlines()))
        number = release.version.partition('+')[0].partition('~')[0]
        for program in ('cosmosd', 'cosmos', 'vale-ctl', 'pkt-gen',
                        '/usr/lib/clickos/clickos-process'):
            self.assertEqual(number, self.run_there(
                f'{program} --version').split()[-1], program)

    def start(self):
        shutil.copytree(os.environ['CLICKOS_NOXEN'],
                        self.machine.root / 'opt/noxen', symlinks=True)
        self.run_there(_STORE)
        self.run_there(
            f'sed -i -e \'s/^host_kind.*/host_kind = "process"/\' '
            '-e \'s|^xenstore_dir.*|xenstore_dir = "/run/clickos/store"|\' '
            f'-e \'s/^cgroup.*/cgroup = ""/\' {_CONFIGURATION}')
        self.run_there('sed -i /^xenstore/d /etc/clickos/valed.toml')
        #: an older valed keeps no ports for its next start
        self.keeps = ' kept ' in self.run_there('vale-ctl --help')
        self.run_there('systemctl enable --now valed cosmosd')
        self.await_cosmosd()
        self.assertEqual('clickos-valed', self.run_there(
            f'stat -c %U /proc/{self.pid("valed")}'))
        self.attach_a_tap()
        self.show_nothing_to_a_stranger()

    def show_nothing_to_a_stranger(self):
        """Guests, ports, chains and rules are for root and the services."""
        for command in ('cosmos list', 'vale-ctl list', 'vale-ctl chain list',
                        'vale-ctl offload show'):
            self.run_there(command)
            said = self.run_there(f'runuser -u nobody -- {command} 2>&1; '
                                  'echo "status $?"')
            self.assertRegex(said, 'uid [0-9]+ has no role here.*\nstatus 1$')
        for user, command in (('clickos-agent', 'cosmos list'),
                              ('nova', 'cosmos list'),
                              ('clickos-valed', 'vale-ctl list')):
            self.run_there(f'runuser -u {user} -- {command}')

    def await_cosmosd(self):
        self.run_there('for i in $(seq 100); do cosmos list && exit; '
                       'sleep 0.1; done; journalctl -n 20; exit 1')

    def attach_a_tap(self):
        """Taps work in valed's sandbox; the stream has packet sockets."""
        self.run_there('vale-ctl attach vale0:t --kind tap --ifname t0 '
                       '--segment 7 && vale-ctl detach vale0:t')

    def forward(self):
        pings = stream.Stream(self.machine)
        pings.start()
        pings.await_more()
        self.assertEqual(0, stream.lost(pings.answered())[0])
        pings.stop()

    def guest_forwards_through_an_upgrade(self):
        pings = stream.Stream(self.machine)
        pings.start()
        guest = self.run_there('pidof clickos-process')
        switch, toolstack = self.pid('valed'), self.pid('cosmosd')
        written = self.configurations()
        counted, forwarded = len(pings.answered()), pings.forwarded()

        self.machine.install(self.newer.packages)
        self.assert_installed(self.newer)
        self.await_cosmosd()
        pings.await_more()
        self.assertEqual(switch, self.pid('valed'))
        self.assertNotEqual(toolstack, self.pid('cosmosd'))
        self.assertEqual(guest, self.run_there('pidof clickos-process'))
        self.assertIn('running', self.run_there('cosmos list'))
        self.assertEqual(written, self.configurations())
        answered = pings.answered()
        during = len(answered) - counted
        self.assertLessEqual(during, pings.forwarded() - forwarded)
        count, silence_s = stream.lost(answered)
        print(f'upgrade from {self.older.version} to {self.newer.version}: '
              f'{during} pings answered, {count} lost', flush=True)
        bounds.hold('max_upgrade_lost_pings', count)

        self.refuse_the_older()
        self.restart_the_switch(pings)
        pings.stop()

    def configurations(self):
        """Return names, rights and contents of the files in /etc/clickos."""
        return self.run_there('cd /etc/clickos && stat -c "%n %a %U %G" * && '
                              'sha256sum *')

    def refuse_the_older(self):
        """apt goes back only with --allow-downgrades."""
        shutil.copytree(self.older.folder, self.machine.root / 'older')
        said = self.machine.run(
            'apt-get install -y /older/*.deb 2>&1; echo "status $?"')
        self.assertIn('downgraded', said)
        self.assertIn('status 100', said)
        self.assert_installed(self.newer)

    def restart_the_switch(self, pings):
        """The new valed continues with the rings of the old one."""
        self.assertTrue(self.program('valed').endswith('(deleted)'))
        guest, last = self.run_there('pidof clickos-process'), max(
            pings.answered())
        self.run_there('systemctl restart valed && '
                       'for i in $(seq 100); do vale-ctl list >/dev/null && '
                       'exit; sleep 0.1; done; exit 1')
        if not self.keeps:
            pings.attach()
        pings.await_more()
        self.assertEqual('/usr/sbin/valed', self.program('valed'))
        self.assertEqual(guest, self.run_there('pidof clickos-process'))
        count, silence_s = stream.lost(pings.answered(), last)
        print(f'restart of valed: {count} pings lost, silent for '
              f'{silence_s:.2f} s', flush=True)
        bounds.hold('max_switch_restart_silent_seconds', silence_s)

    def remove(self):
        names = ' '.join(_NAMES)
        self.run_there(f'apt-get remove -y {names}')
        self.assertEqual('', self.machine.run('pidof valed cosmosd',
                                              check=False))
        self.assertTrue((self.machine.root / _CONFIGURATION[1:]).exists())
        self.run_there(f'apt-get purge -y {names}; systemctl stop store')
        left = self.run_there(
            'find / -xdev \\( -path /proc -o -path /packages -o '
            '-path /older -o -path /var/cache/apt -o -path /var/log -o '
            '-path /var/lib/apt \\) -prune -o '
            '\\( -name "*clickos*" -o -name "*cosmosd*" -o -name "valed*" \\)'
            ' -print; find /run -name "*clickos*"')
        self.assertEqual('', left)


class _Release:
    """The packages of a folder, all of one version."""

    def __init__(self, folder):
        self.folder = folder
        self.packages = sorted(folder.glob('*.deb'))
        (self.version,) = {_version(path) for path in self.packages}


def _version(package):
    return subprocess.run(['dpkg-deb', '-f', package, 'Version'], check=True,
                          capture_output=True, text=True).stdout.strip()
