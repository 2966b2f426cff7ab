# SPDX-License-Identifier: Apache-2.0
"""The packages in a fresh Debian: install, run, upgrade, remove, purge."""

import shutil
import tomllib
import unittest

from clickos_lab import debian_root
from clickos_lab import debs
from clickos_lab import paths

_CONFIGURATION = '/etc/clickos/cosmosd.toml'
_UNITS = ('valed', 'cosmosd', 'clickos-agent')
#: A host of processes: Debian's xenstored runs without a hypervisor.
_STORE = 'systemd-run --unit=store /opt/noxen/xenstored.sh /opt/noxen ' \
    '/run/clickos/store'
_WIRE = 'FromDevice(0) -> Queue -> ToDevice(0);'


class PackagesTest(unittest.TestCase):

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.state = paths.State()
        folder = cls.state.root / 'packages'
        cls.versions = [
            debs.build(cls.state, folder / number, number)
            for number in ('0.1.0+1', '0.1.0+2')]
        cls.machine = cls.enterClassContext(debian_root.DebianRoot(
            cls.state, folder / 'root'))

    def test_life_of_an_installation(self):
        self.install()
        self.start()
        self.guest_outlives_an_upgrade()
        self.remove()

    def run_there(self, script):
        return self.machine.run(script)

    def pid(self, unit):
        return self.run_there(f'systemctl show -p MainPID --value {unit}')

    def install(self):
        self.run_there('useradd --system nova')
        self.machine.install(self.versions[0])
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

    def start(self):
        shutil.copytree(self.state.noxen, self.machine.root / 'opt/noxen',
                        symlinks=True)
        self.run_there(_STORE)
        self.run_there(
            f'sed -i -e \'s/^host_kind.*/host_kind = "process"/\' '
            '-e \'s|^xenstore_dir.*|xenstore_dir = "/run/clickos/store"|\' '
            f'-e \'s/^cgroup.*/cgroup = ""/\' {_CONFIGURATION}')
        self.run_there('sed -i /^xenstore/d /etc/clickos/valed.toml')
        self.run_there('systemctl enable --now valed cosmosd')
        self.run_there('for i in $(seq 100); do cosmos list && exit; '
                       'sleep 0.1; done; journalctl -n 20; exit 1')
        self.assertEqual('clickos-valed', self.run_there(
            f'stat -c %U /proc/{self.pid("valed")}'))
        self.attach_an_interface()

    def attach_an_interface(self):
        """Packet sockets and taps work in valed's sandbox."""
        self.run_there('ip link add x0 type veth peer name x1 && '
                       'vale-ctl attach vale0:x --kind veth --ifname x0 '
                       '--segment 7 && vale-ctl attach vale0:t --kind tap '
                       '--ifname t0 --segment 7 && vale-ctl detach vale0:t '
                       '&& vale-ctl detach vale0:x')

    def guest_outlives_an_upgrade(self):
        (self.machine.root / 'root/wire.click').write_text(_WIRE)
        self.run_there('cosmos create --name wire --config /root/wire.click '
                       '--vif port=a,segment=1')
        guest = self.run_there('pidof clickos-process')
        pids = {unit: self.pid(unit) for unit in ('valed', 'cosmosd')}
        self.machine.install(self.versions[1])
        self.assertEqual(pids['valed'], self.pid('valed'))
        self.assertNotEqual(pids['cosmosd'], self.pid('cosmosd'))
        self.assertEqual(guest, self.run_there('pidof clickos-process'))
        self.run_there('for i in $(seq 100); do cosmos list && exit; '
                       'sleep 0.1; done; exit 1')
        self.assertIn('running', self.run_there('cosmos list'))
        self.assertIn('process', self.run_there(f'cat {_CONFIGURATION}'))
        self.run_there('cosmos destroy wire')

    def remove(self):
        names = ' '.join(f'clickos-{name}' for name in debs.NAMES)
        self.run_there(f'apt-get remove -y {names}')
        self.assertEqual('', self.machine.run('pidof valed cosmosd',
                                              check=False))
        self.assertTrue((self.machine.root / _CONFIGURATION[1:]).exists())
        self.run_there(f'apt-get purge -y {names}; systemctl stop store')
        left = self.run_there(
            'find / -xdev \\( -path /proc -o -path /packages -o '
            '-path /var/cache/apt -o -path /var/log -o '
            '-path /var/lib/apt \\) -prune -o '
            '\\( -name "*clickos*" -o -name "*cosmosd*" -o -name "valed*" \\)'
            ' -print; find /run -name "*clickos*"')
        self.assertEqual('', left)
