# SPDX-License-Identifier: Apache-2.0
"""A TCP connection through a NAT that moves: two hosts, no OpenStack.

::

    client === valed A [segment 1] === veth === [segment 1] valed B
                          NAT   ----- moves ----->   NAT
    server === valed A [segment 2] === veth === [segment 2] valed B
"""

import contextlib
import os
import sys
import time
import types
import unittest

from clickos_lab import bare_host
from clickos_lab import bounds
from clickos_lab import paths
from nova_clickos.conf import CONF
from nova_clickos.migration import identity
from nova_clickos.migration import incoming
from nova_clickos.migration import outgoing
from tests import nat

UUID = '3f0a6d4e-6f0e-4a4e-9c1c-0d4b0f3f2a11'
MACS = {'client': '02:00:00:00:01:09', 'server': '02:00:00:00:02:09',
        'inner': '02:00:00:00:01:01', 'outer': '02:00:00:00:02:01'}
IPS = {'client': '10.1.1.9', 'server': '10.1.2.9', 'inner': '10.1.1.1',
       'outer': '10.1.2.1'}
SERVER = '''
import socket
server = socket.create_server(("", 7000))
while True:
    peer, _ = server.accept()
    while data := peer.recv(4096):
        peer.sendall(data)
'''
#: Sends every 10 ms on one connection; a line of input ends it, and it prints
#: the longest time without an answer.
CLIENT = '''
import socket, sys, threading, time
end = time.monotonic() + 60
while True:
    try:
        peer = socket.create_connection((sys.argv[1], 7000), 1)
        break
    except OSError:
        if time.monotonic() > end:
            raise
print("connected", flush=True)
peer.settimeout(60)
def send():
    while True:
        peer.sendall(b"0123456789")
        time.sleep(0.01)
threading.Thread(target=send, daemon=True).start()
threading.Thread(target=lambda: (sys.stdin.readline(), times.append(None)),
                 daemon=True).start()
times, last, longest = [], time.monotonic(), 0
while not times:
    assert peer.recv(4096)
    longest, last = max(longest, time.monotonic() - last), time.monotonic()
print(longest, flush=True)
'''


class LiveMigrationTest(unittest.TestCase):

    client: bare_host.Machine
    server: bare_host.Machine

    def setUp(self):
        super().setUp()
        self.stack = self.enterContext(contextlib.ExitStack())
        state = paths.State()
        first = 2_000_000 + os.getpid() % 10_000 * 1000
        self.hosts = [bare_host.Host(state, name, first + 500 * n, self.stack)
                      for n, name in enumerate('ab')]
        self.prefix = f'm{os.getpid() % 100_000}'
        for segment, name in ((1, 'client'), (2, 'server')):
            self.connect(segment)
            setattr(self, name, bare_host.Machine(
                self.hosts[0], self.stack, f'{self.prefix}{name[0]}', name,
                segment, MACS[name], IPS[name]))
        self.client.ip('route', 'add', 'default', 'via', IPS['inner'])

    def connect(self, segment):
        """Lead a segment from one host to the other."""
        ends = [f'{self.prefix}{each.name}{segment}' for each in self.hosts]
        bare_host.run('ip', 'link', 'add', ends[0], 'type', 'veth', 'peer',
                      'name', ends[1])
        self.stack.callback(bare_host.run, 'ip', 'link', 'delete', ends[0])
        for end, each in zip(ends, self.hosts):
            bare_host.run('ip', 'link', 'set', end, 'addrgenmode', 'none')
            bare_host.run('ip', 'link', 'set', end, 'up')
            each.attach(f'u{segment}', end, segment)

    @staticmethod
    def vifs():
        return [{'devid': devid, 'mac': MACS[name], 'switch': 'vale0',
                 'port': f'g{devid}', 'segment': devid + 1, 'allowed': [],
                 'port_security': False, 'mtu': 1500, 'slots': 512}
                for devid, name in enumerate(('inner', 'outer'))]

    @staticmethod
    def await_packets(client, number):
        """Wait until a number of further packets passed the NAT."""
        def passed():
            return int(client.call('handler-read', uuid=UUID,
                                   name='passed.count')['value'])

        wanted = passed() + number
        while passed() < wanted:        # the limit of the test ends it
            time.sleep(0.05)

    def test_a_tcp_connection_through_a_nat_survives(self):
        source, target = (each.client for each in self.hosts)
        engine = source.call('host')['engine_sha256']
        source.call('create', uuid=UUID, name='nat', image_sha256=engine,
                    memory_mib=16, vifs=self.vifs(),
                    config=nat.config(MACS['inner'], MACS['outer']),
                    config_name='nat.click')
        self.server.start(SERVER)
        client = self.client.start(CLIENT, IPS['server'])
        self.assertEqual('connected\n', client.stdout.readline())
        self.await_packets(source, 20)
        expected = incoming.Arrivals(target)
        server = types.SimpleNamespace(
            uuid=UUID, name='nat',
            flavor=types.SimpleNamespace(memory_mb=16, vcpus=1))
        CONF.set_override('migration_address', '127.0.0.1', group='clickos')
        self.addCleanup(CONF.clear_override, 'migration_address',
                        group='clickos')
        own = identity.Identity()
        invitation = expected.expect(server, engine, self.vifs(),
                                     own.certificate)
        outgoing.move(source, UUID, invitation, own)
        self.await_packets(target, 100)
        client.stdin.write('\n')
        client.stdin.flush()
        silence_s = float(client.stdout.readline())
        print(f'silence: {silence_s:.3f} s', file=sys.stderr)
        bounds.hold('max_live_migration_silence_seconds', silence_s)
        self.assertEqual([], source.call('list')['guests'])
        count = target.call('handler-read', uuid=UUID,
                            name='passed.count')['value']
        self.assertGreater(int(count), 50)
