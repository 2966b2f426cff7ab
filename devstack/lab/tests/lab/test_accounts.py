# SPDX-License-Identifier: Apache-2.0
"""As whom the services of the running lab run, and what they can reach."""

import json
import os
import pathlib
import subprocess
import unittest

from clickos_lab import accounts
from clickos_lab.config import neutron_agents
from clickos_lab import paths
from clickos_lab import processes
from clickos_lab import settings

#: The processes that are root, and the capabilities that others keep.
_ROOT = set(accounts.ROOT)
#: CAP_NET_ADMIN and CAP_NET_RAW, linux/capability.h.
_KEPT = dict.fromkeys(('valed', 'valed-2'), 1 << 12 | 1 << 13)
_SETS = ('CapInh', 'CapPrm', 'CapEff', 'CapBnd', 'CapAmb')
#: The programs that an agent of Neutron's has as another user than its own.
_AGENTS_ROOT = {'unshare', 'sh', 'root_helper.py', 'neutron-rootwrap',
                'privsep-helper', 'dnsmasq'}
#: CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH, CAP_NET_ADMIN, CAP_SYS_PTRACE and
#: CAP_SYS_ADMIN: what Neutron's privsep helpers keep.
_HELPERS_KEEP = sum(1 << number for number in (1, 2, 12, 19, 21))

#: The accounts that can read a folder of etc or a file in it.
_READERS = {
    'keystone': {'keystone'}, 'glance': {'glance'},
    'placement': {'placement'}, 'neutron': {'neutron'}, 'nova': {'nova'},
    'nova/nova-compute.conf': {'nova-compute'},
    'nova/nova-compute-2.conf': {'nova-compute-2'},
    'nova/nova-compute-xen.conf': {'nova-compute-xen'},
    'nova/nova-compute-xen2.conf': {'nova-compute-xen2'},
    'tacker': {'tacker'}, 'clickos/clickos-api.conf': {'clickos'},
    'clickos/secret.key': {'clickos'},
    'clickos/clickos-agent.conf': {'clickos-agent'},
    'clickos/clickos-agent-2.conf': {'clickos-agent-2'},
    'clickos/clickos-agent-xen.conf': {'clickos-agent-xen'},
    'clickos/clickos-agent-xen2.conf': {'clickos-agent-xen2'},
    'rabbit': {'rabbitmq'}, 'front': {'front'}, 'valed.toml': {'valed'},
    'valed-2.toml': {'valed-2'},
    'uwsgi/keystone.ini': {'keystone'}, 'uwsgi/glance.ini': {'glance'},
    'uwsgi/placement.ini': {'placement'}, 'uwsgi/neutron.ini': {'neutron'},
    'uwsgi/nova.ini': {'nova'}, 'uwsgi/clickos-api.ini': {'clickos'},
    'horizon': {'horizon'}, 'uwsgi/horizon.ini': {'horizon'}}
_DATABASE = {'mariadb', 'keystone', 'glance', 'placement', 'neutron', 'nova',
             'tacker', 'clickos'}
#: The accounts that can open a socket, by its folder.
_CLIENTS = {
    'mariadb': _DATABASE, 'memcached': {'memcached', 'keystone'},
    'cosmosd': {'nova-compute', 'clickos-agent'},
    'cosmosd-2': {'nova-compute-2', 'clickos-agent-2'},
    'xen-nova': {'xen-nova', 'nova-compute-xen'},
    'xen-agent': {'xen-agent', 'clickos-agent-xen'},
    'xen2-nova': {'xen2-nova', 'nova-compute-xen2'},
    'xen2-agent': {'xen2-agent', 'clickos-agent-xen2'},
    'valed': {'valed'}, 'xenstored': {'xenstored'},
    'valed-2': {'valed-2'}, 'xenstored-2': {'xenstored-2'},
    **{api: {api, 'front'} for api in ('keystone', 'glance', 'placement',
                                       'neutron', 'nova', 'tacker',
                                       'clickos', 'horizon')}}

#: Tries every path of standard input; prints those that opened.
_TRY = '''
import json, socket, stat, os, sys
opened = []
for path in json.load(sys.stdin):
    try:
        if stat.S_ISSOCK(os.stat(path).st_mode):
            socket.socket(socket.AF_UNIX).connect(path)
        elif os.path.isdir(path):
            os.listdir(path)
        else:
            open(path, 'rb').close()
        opened.append(path)
    except OSError:
        pass
print(json.dumps(opened))
'''


def _status(pid):
    text = pathlib.Path(f'/proc/{pid}/status').read_text()
    return dict(line.split(':', 1) for line in text.splitlines())


def _uid(pid):
    return int(_status(pid)['Uid'].split()[0])


def _command(pid):
    return pathlib.Path(f'/proc/{pid}/cmdline').read_text()


def _program(pid):
    """The name of a process's program, or of the script in Python."""
    words = [word for word in _command(pid).split('\0') if word != '-I']
    names = [os.path.basename(word) for word in words]
    return names[names[0].startswith('python')]


def _pid_space(entry):
    try:
        return os.readlink(entry / 'ns/pid')
    except OSError:
        return None


class AccountsTest(unittest.TestCase):

    def setUp(self):
        super().setUp()
        self.state = paths.State()
        self.settings = settings.Settings.load(self.state)
        self.processes = processes.Processes(self.state)

    def test_no_service_is_root_or_keeps_a_capability(self):
        agents = set(neutron_agents.PROGRAMS)
        names = set(self.processes.names()) - _ROOT - agents
        self.assertGreater(len(names), 15)
        for name in names:
            pids = self.processes.members(name)
            self.assertTrue(pids, name)
            for pid in pids:
                self.check(name, pid)

    def test_only_the_helpers_of_neutrons_agents_are_privileged(self):
        neutron, kept = self.settings.ids['neutron'], []
        for agent in neutron_agents.PROGRAMS:
            pids = self.together(agent)
            own = {pid for pid in pids if _uid(pid) == neutron}
            self.assertIn(agent, ' '.join(map(_command, own)))
            for pid in own:
                self.check(agent, pid)
            for pid in pids - own:
                program = _program(pid)
                self.assertIn(program, _AGENTS_ROOT)
                if program == 'privsep-helper':
                    kept.append(int(_status(pid)['CapPrm'], 16))
        # The L3 agent looks for namespaces when it starts.
        self.assertTrue(kept)
        self.assertEqual([], [sets for sets in kept if sets & ~_HELPERS_KEEP])

    def together(self, agent):
        """The processes of an agent, also those that left its session."""
        first = self.processes.find(agent).pid
        space = os.readlink(f'/proc/{first}/ns/pid_for_children')
        return {first, *(int(entry.name) for entry in
                         pathlib.Path('/proc').iterdir()
                         if entry.name.isdigit()
                         and _pid_space(entry) == space)}

    def check(self, name, pid):
        status = _status(pid)
        for ids in ('Uid', 'Gid'):
            self.assertNotIn('0', status[ids].split(), (name, ids))
        self.assertEqual('1', status['NoNewPrivs'].strip(), name)
        self.assertNotIn('0', status['Groups'].split(), name)
        for kind in _SETS:
            self.assertEqual(_KEPT.get(name, 0), int(status[kind], 16),
                             (name, kind))

    def test_services_start_in_an_empty_folder(self):
        # MariaDB continues to its data by itself.
        names = set(self.processes.names()) - _ROOT - {'mariadb'}
        self.assertGreater(len(names), 10)
        for name in names:
            pid = self.processes.find(name).pid
            self.assertEqual([], os.listdir(f'/proc/{pid}/cwd'), name)

    def test_no_id_has_two_users(self):
        ids = list(self.settings.ids.values())
        self.assertEqual(len(ids), len(set(ids)))

    def opened(self, account, wanted):
        done = subprocess.run(
            [*accounts.prefix(self.state, self.settings, account),
             self.state.tool('python'), '-I', '-c', _TRY],
            input=json.dumps([str(path) for path in wanted]), text=True,
            capture_output=True, check=True)
        return {pathlib.Path(path) for path in json.loads(done.stdout)}

    def expected(self):
        """Map each file, folder and socket to the accounts that open it."""
        found = {}
        for path in self.state.etc.rglob('*'):
            if path.is_file():
                name = str(path.relative_to(self.state.etc))
                found[path] = _READERS.get(name) or _READERS.get(
                    name.partition('/')[0], set())
        for path in self.state.run.rglob('*'):
            if path.is_socket():
                found[path] = _CLIENTS.get(
                    path.relative_to(self.state.run).parts[0], set())
        for path in self.private():
            if path.exists():
                found[path] = set()
        return found

    def private(self):
        """No account reads secrets, logs or the list of folders."""
        state = self.state
        return [state.settings, state.root, state.log, state.data, state.run,
                state.etc, state.root / 'xen', state.data / 'mysql/ibdata1',
                state.root / 'openrc-admin', state.root / 'openrc-demo',
                *state.log.glob('*.log')]

    def test_each_account_opens_its_own_files_and_sockets_only(self):
        expected = self.expected()
        for account in accounts.ALL:
            own = {path for path, who in expected.items() if account in who}
            own |= {path for path in expected if path.name == 'ibdata1'
                    and account == 'mariadb'}
            self.assertEqual(own, self.opened(account, expected), account)

    def test_no_account_writes_what_others_run(self):
        programs = [self.state.venv, self.state.noxen, self.state.target]
        for account in accounts.ALL:
            for folder in programs:
                done = subprocess.run(
                    [*accounts.prefix(self.state, self.settings, account),
                     'touch', folder / 'probe'], capture_output=True)
                self.assertNotEqual(0, done.returncode, (account, folder))
