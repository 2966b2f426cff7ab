# SPDX-License-Identifier: Apache-2.0
"""cosmosd and its clients on a Xen host: many, rude, without rights."""

import concurrent.futures
import json
import socket
import time

from clickos_lab.xen import qemu
from clickos_lab.xen import toolstack
from tests.xen import base
from tests.xen import guest

_CONFIG = 'Idle -> c :: Counter -> Discard;'
_CLIENTS = 200
#: More than two values of the store.
_LONG = '// A line of a long configuration.\n' * 150 + _CONFIG
#: Nodes of a guest, more than the 1,000 that the store grants it.
_NODES = 1100
_SOCKET = f'{toolstack.FOLDER}/cosmosd.sock'
#: Gives a guest nodes that it does not have, in folders of a hundred.
_FILL = """
for folder in $(seq {last}); do
    nodes=()
    for node in $(seq 100); do
        nodes+=({folder}/$folder/$node "")
    done
    xenstore-write "${{nodes[@]}}"
done
xenstore-chmod -r {folder} n{domid}
"""


class ToolstackCase(base.CosmosTest):
    """A host on which the guest ``one`` runs."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        toolstack.start(cls.host, 'valed')
        toolstack.start(cls.host, 'cosmosd')
        cls.dom0.put_text(_CONFIG, '/tmp/idle.click')
        cls._cosmos('create --name one --config /tmp/idle.click '
                    '--vif port=one --timeout 60')

    @classmethod
    def _run(cls, arguments):
        return cls.dom0.run(f'COSMOSD_SOCKET={_SOCKET} '
                            f'{toolstack.FOLDER}/cosmos {arguments}')

    @classmethod
    def _cosmos(cls, arguments):
        done = cls._run(arguments)
        if done.status != 0:
            raise AssertionError(f'{arguments}: {done.err}')
        return done.out

    def _info(self, name):
        return json.loads(self._cosmos(f'info {name} -o json'))


class OnEitherStore:
    """Tests of behavior that differs between the store's daemons."""

    @base.slow
    def test_a_guest_that_has_used_up_its_quota(self):
        domid = self._info('one')['domid']
        folder = f'/local/domain/{domid}/data/full'
        self.dom0.check(_FILL.format(folder=folder, last=_NODES // 100,
                                     domid=domid))
        done = self._run('read one c.count')
        self.assertEqual(1, done.status)
        self.assertIn("store: the guest's quota in the Xen store is used up",
                      done.err)
        self.dom0.check(f'xenstore-rm {folder}')
        self.assertEqual('0', self._cosmos('read one c.count').strip())

    @base.slow
    def test_a_long_configuration(self):
        self.dom0.put_text(_LONG, '/root/long.click')
        self._cosmos('install one /root/long.click')
        self.assertEqual(_LONG, self._cosmos('read one config --raw'))

    @base.slow
    def test_doctor_names_the_store(self):
        done = self._run(f'doctor --valed {toolstack.FOLDER}/valed.sock')
        self.assertIn(f'the Xen store, by {self.store}', done.out)
        self.assertEqual(0, done.status, done.out)


class ToolstackTest(OnEitherStore, ToolstackCase):

    store = qemu.Machine.store

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.socket = cls.host.places.root / 'c'
        toolstack.bring(cls.host, cls.socket)

    @base.slow
    def test_many_clients_at_once(self):
        line = json.dumps({'v': 1, 'id': 1, 'verb': 'handler-write', 'args': {
            'uuid': self._info('one')['uuid'], 'rid': 0,
            'writes': [['c.reset', '']], 'timeout_ms': 50000}}) + '\n'
        lines = [line.encode()] * _CLIENTS
        # Every eighth client hangs up in mid-request.
        lines[::8] = [line[:40].encode()] * len(lines[::8])
        with concurrent.futures.ThreadPoolExecutor(_CLIENTS) as clients:
            answers = list(clients.map(self._answer, lines))
        self.assertEqual([''] * len(lines[::8]), answers[::8])
        del answers[::8]
        done = {'v': 1, 'id': 1, 'ok': {}}
        self.assertEqual([done] * len(answers),
                         [json.loads(answer) for answer in answers])
        self.assertEqual('0', self._cosmos('read one c.count').strip())

    def _answer(self, line):
        """Send a line and what there is no more of; return what comes."""
        with socket.socket(socket.AF_UNIX) as client:
            client.connect(str(self.socket))
            client.settimeout(60)
            client.sendall(line)
            client.shutdown(socket.SHUT_WR)
            return client.makefile().readline()

    @base.slow
    def test_who_has_no_role_gets_nothing(self):
        for program, verbs in (('cosmos', ('list', 'info one', 'destroy one')),
                               ('vale-ctl', ('list', 'ports'))):
            for verb in verbs:
                command = toolstack.command(program, *verb.split())
                done = self.dom0.run(f"su -s /bin/ash sshd -c '{command}'")
                self.assertEqual((1, ''), (done.status, done.out))
                self.assertIn('uid 100 has no role', done.err)
        self.assertEqual('0', self._cosmos('read one c.count').strip())

    def _crashed(self, name, domid):
        """Give a guest an exception; return whether it crashed."""
        self.dom0.run(guest.crash(domid))
        for _ in range(50):
            if self._info(name)['state'] == 'crashed':
                return True
            time.sleep(0.1)
        return False

    @base.slow
    def test_a_dead_guest(self):
        self._cosmos('create --name dead --config /tmp/idle.click '
                     '--vif port=dead --timeout 60')
        self.addCleanup(self._cosmos, 'destroy dead')
        domid = self._info('dead')['domid']
        self.wait_for(lambda: self._crashed('dead', domid))
        for arguments in ('read dead c.count', 'install dead /tmp/idle.click',
                          'stop dead', 'pause dead'):
            done = self._run(arguments)
            self.assertEqual(1, done.status, arguments)
            self.assertIn('dead-guest: ', done.err)
        self.assertIn('exception ', self._cosmos('console dead'))
