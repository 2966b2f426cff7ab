# SPDX-License-Identifier: Apache-2.0
"""TCP connections through a hop that grows and shrinks, without OpenStack.

::

    client === valed === server
               |   |
            guest guest     each keeps the connections that it saw begin
"""

import contextlib
import itertools
import os
import unittest

from clickos_client import flows
from clickos_lab import bare_host
from clickos_lab import bounds
from clickos_lab import paths

MACS = {'client': '02:00:00:00:03:01', 'server': '02:00:00:00:03:02'}
IPS = {'client': '10.1.3.1', 'server': '10.1.3.2'}
#: Passes TCP only of connections whose beginning it saw.
HOP = '''
flows :: IPRewriter(keep 0 1, drop, drop);
FromDevice(0) -> there :: Classifier(12/0800 23/06, -);
there[0] -> MarkIPHeader(14) -> begins :: IPClassifier(syn and not ack, -);
begins[0] -> opened :: Counter -> [0]flows;
begins[1] -> [1]flows;
FromDevice(1) -> back :: Classifier(12/0800 23/06, -);
back[0] -> MarkIPHeader(14) -> [2]flows;
flows[0] -> right :: Queue -> ToDevice(1);
flows[1] -> left :: Queue -> ToDevice(0);
there[1] -> right;
back[1] -> left;
'''
#: Gives connections the address that all guests share, and a port of its part.
NAT = '''
flows :: IPRewriter(pattern {ip} {ports} - - 0 1, drop);
FromDevice(0) -> there :: Classifier(12/0800, -);
there[0] -> Strip(14) -> CheckIPHeader -> [0]flows;
FromDevice(1) -> back :: Classifier(12/0806 20/0001, 12/0800, -);
back[0] -> ARPResponder({ip} {mac}) -> right :: Queue -> ToDevice(1);
back[1] -> Strip(14) -> CheckIPHeader -> [1]flows;
flows[0] -> EtherEncap(0x0800, {mac}, {server}) -> right;
flows[1] -> EtherEncap(0x0800, {mac}, {client}) -> Queue -> ToDevice(0);
there[1] -> Discard;
back[2] -> Discard;
'''
SERVER = '''
import socket, threading
def serve(peer):
    while data := peer.recv(4096):
        peer.sendall(data)
server = socket.create_server(("", 7000), backlog=1024)
print("listens", flush=True)
while True:
    threading.Thread(target=serve, args=server.accept()[:1],
                     daemon=True).start()
'''
#: Opens connections to some addresses. For each line of input it uses all of
#: them, and prints how many answer.
CLIENT = '''
import select, socket, sys, time
number, *hosts = sys.argv[1:]
alive = {socket.create_connection((hosts[n % len(hosts)], 7000), 60)
         for n in range(int(number))}
print(len(alive), flush=True)
for line in sys.stdin:
    for each in alive:
        each.send(b".")
    answered, end = set(), time.monotonic() + 60
    while answered != alive and time.monotonic() < end:
        ready = select.select(list(alive - answered), [], [], 0.1)[0]
        answered |= {each for each in ready if each.recv(4096)}
    alive = answered
    print(len(alive), flush=True)
'''
CONNECTIONS = 200
_TESTS = itertools.count()


class Guest:
    """A guest as clickos_client.flows takes it.

    :param client: of its host's cosmosd
    """

    def __init__(self, client, uuid):
        self._client, self.name = client, uuid

    def list(self):
        """Return the names of handlers."""
        return [handler['name'] for handler
                in self._client.call('handler-list',
                                     uuid=self.name)['handlers']]

    def read(self, element, part):
        """Read a part of an element's flows."""
        return self._client.call('handler-read', uuid=self.name,
                                 name=f'{element}.state',
                                 param=str(part))['value']

    def write(self, writes):
        """Write handlers."""
        self._client.call('handler-write', uuid=self.name, writes=writes)


class HopTestCase(unittest.TestCase):
    """A client, a server, and three guests of a hop."""

    chain_end, options = ',transparent', ()
    #: The server's addresses.
    addresses = (IPS['server'],)

    def setUp(self):
        super().setUp()
        stack = self.enterContext(contextlib.ExitStack())
        first_uid = 2_000_000 + os.getpid() % 10_000 * 1000
        self.host = bare_host.Host(paths.State(), 'a', first_uid, stack)
        # A namespace takes a while to go after its test.
        prefix = f's{os.getpid() % 100_000}{next(_TESTS)}'
        self.client, self.server = (
            bare_host.Machine(self.host, stack, prefix + name[0], name, 1,
                              MACS[name], IPS[name])
            for name in ('client', 'server'))
        for address in self.addresses[1:]:
            self.server.ip('address', 'add', f'{address}/24', 'dev', 'eth0')
        self.assertEqual('listens\n',
                         self.server.start(SERVER).stdout.readline())
        self.guests = [self.boot(n, self.config(n)) for n in range(3)]

    def config(self, n):
        """Return the configuration of a guest."""
        return HOP

    def boot(self, n, config):
        """Start a guest of the hop; return its id."""
        uuid = f'3f0a6d4e-6f0e-4a4e-9c1c-0d4b0f3f2b{n:02}'
        vifs = [{'devid': devid, 'mac': f'02:00:00:00:04:{n}{devid}',
                 'switch': 'vale0', 'port': f'h{n}-{side}', 'segment': 1,
                 'allowed': [], 'port_security': False, 'mtu': 1500,
                 'slots': 512} for devid, side in enumerate(('in', 'out'))]
        client = self.host.client
        client.call('create', uuid=uuid, name=f'h{n}',
                    image_sha256=client.call('host')['engine_sha256'],
                    memory_mib=16, vifs=vifs, config=config,
                    config_name='hop.click')
        return uuid

    def chain(self, *instances):
        """Give the hop these instances."""
        pairs = '+'.join(f'h{n}-in:h{n}-out' for n in instances)
        self.host.switch('chain', 'set', 'vale0:web', '--segment=1',
                         '--match=from=client,protocol=6',
                         f'--hop={pairs}{self.chain_end}', *self.options)

    def connect(self):
        """Open connections through the hop."""
        process = self.client.start(CLIENT, str(CONNECTIONS),
                                    *self.addresses)
        self.assertEqual(CONNECTIONS, int(process.stdout.readline()))
        return process

    @staticmethod
    def lost(process):
        """Return how many connections do not answer any more."""
        process.stdin.write('\n')
        process.stdin.flush()
        return CONNECTIONS - int(process.stdout.readline())

    def assertKept(self, clients):
        """Check that the connections of clients still answer."""
        bounds.hold('max_scaling_lost_connections',
                    sum(map(self.lost, clients)))

    def value(self, uuid, name):
        """Read a handler of a guest."""
        return self.host.client.call('handler-read', uuid=uuid,
                                     name=name)['value']

    def opened(self):
        """Return the connections that each guest saw begin."""
        return [int(self.value(uuid, 'opened.count'))
                for uuid in self.guests]

    def give(self, leaver, *heirs):
        """Let guests take the flows of another one."""
        leaver, *heirs = (Guest(self.host.client, self.guests[n])
                          for n in (leaver, *heirs))
        return flows.transfer(leaver, heirs)

    def leave(self, leaver, *heirs):
        """Scale in: one guest gives its flows away, and goes."""
        given = self.give(leaver, *heirs)
        self.chain(*heirs)
        self.give(leaver, *heirs)
        self.host.client.call('destroy', uuid=self.guests[leaver])
        return given


class ScaledHopTest(HopTestCase):
    """A firewall with state."""

    def test_scale_out_loses_no_connection(self):
        self.chain(0)
        first = self.connect()
        self.chain(0, 1)
        second = self.connect()
        self.chain(0, 1, 2)
        third = self.connect()
        opened = self.opened()
        self.assertGreater(min(opened), CONNECTIONS // 8)
        self.assertKept((first, second, third))
        # The connections of a guest that dies end, and no others.
        self.chain(0, 1)
        self.assertEqual(0, self.lost(first) + self.lost(second))
        self.assertEqual(opened[2], self.lost(third))

    def test_scale_out_and_in_lose_no_connection(self):
        self.chain(0)
        clients = [self.connect()]
        self.chain(0, 1)
        clients.append(self.connect())
        self.chain(0, 1, 2)
        clients.append(self.connect())
        opened = self.opened()
        self.assertGreater(min(opened), CONNECTIONS // 8)
        self.assertEqual(opened[2], self.leave(2, 0, 1))
        self.assertKept(clients)
        self.guests.pop()
        self.assertEqual(opened[:2], self.opened())
        # The guest that goes has those of one that went before.
        self.assertEqual(opened[1] + opened[2], self.leave(1, 0))
        self.assertKept(clients)
        self.assertEqual('0', self.value(self.guests[0],
                                         'flows.merge_lost'))


class ScaledNatTest(HopTestCase):
    """NATs with one address, and a part of the ports each.

    A property with split gives such parts. The server does not know which
    guest translates: it uses the MAC address of whichever answered.
    """

    public = '10.1.3.200'
    chain_end, options = '', (f'--nat={public}/32',)
    # The address of the other end chooses the guest.
    addresses = (IPS['server'], *(f'10.1.3.{n}' for n in range(100, 150)))

    def config(self, n):
        """Return a NAT with ports of its own."""
        first = 1024 + 20_000 * n
        return NAT.format(ip=self.public, mac=f'02:00:00:00:04:{n}1',
                          ports=f'{first}-{first + 19_999}',
                          server=MACS['server'], client=MACS['client'])

    def sizes(self):
        """Return the flows of each guest."""
        return [int(self.value(uuid, 'flows.size')) for uuid in self.guests]

    def test_scale_out_and_in_lose_no_connection(self):
        self.chain(0)
        clients = [self.connect()]
        for instances in ((0, 1), (0, 1, 2)):
            self.chain(*instances)
            clients.append(self.connect())
        sizes = self.sizes()
        self.assertGreater(min(sizes), CONNECTIONS // 8)
        self.assertKept(clients)
        self.assertEqual(sizes[2], self.leave(2, 0, 1))
        self.guests.pop()
        clients.append(self.connect())
        self.assertKept(clients)
        self.leave(1, 0)
        self.guests.pop()
        self.assertKept(clients)
        self.assertEqual([4 * CONNECTIONS], self.sizes())
        self.assertEqual('0', self.value(self.guests[0],
                                         'flows.merge_lost'))
