# SPDX-License-Identifier: Apache-2.0
"""Policies of vale-tc on an interface, with packets of this kernel.

::

    guest (eth0) === vif - br0 - out === (eth0) peer

The host has a namespace of its own. A frame from the guest enters its vif, as
one from a Xen guest enters netback's.
"""

import contextlib
import json
import pathlib
import subprocess
import sys
import unittest

from scapy import all as scapy

from clickos_lab import bare_host
from clickos_lab import paths

_MACS = {'guest': '02:00:00:00:00:01', 'peer': '02:00:00:00:00:02'}
_IPS = {'guest': '10.1.4.1', 'peer': '10.1.4.2'}
_IP6S = {'guest': 'fd00:4::1', 'peer': 'fd00:4::2'}
_OTHER_MAC = '02:00:00:00:00:09'
_OTHER_IP, _OTHER_IP6 = '10.1.4.9', 'fd00:4::9'
#: Sends the frames of its input, in hexadecimal digits.
_SEND = """
import socket, sys
out = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
out.bind(("eth0", 0))
for line in sys.stdin:
    out.send(bytes.fromhex(line))
"""
#: Prints each frame that comes from a network, until one has the last word.
_RECEIVE = """
import socket, sys
found = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
found.bind(("eth0", 0))
found.settimeout(60)
print("listens", flush=True)
while True:
    frame, (_, _, kind, _, _) = found.recvfrom(65535)
    if kind != socket.PACKET_OUTGOING:
        print(frame.hex(), flush=True)
        if b"that is all" in frame:
            break
"""
#: Answers each line of a connection with the line.
_ECHO = """
import socket
server = socket.create_server(("", 7000))
print("listens", flush=True)
while True:
    peer = server.accept()[0]
    while data := peer.recv(4096):
        peer.sendall(data)
"""
#: Connects, then asks once for each line of its input, which is the time
#: for the answer in seconds.
_ASK = """
import socket, sys
peer = socket.create_connection((sys.argv[1], 7000), 60)
print("connected", flush=True)
for line in sys.stdin:
    peer.settimeout(float(line))
    peer.sendall(b"x" * 3000)
    try:
        count = 0
        while count < 3000:
            count += len(peer.recv(4096))
        print("answered", flush=True)
    except TimeoutError:
        print("silent", flush=True)
"""
_CHANGES = 30


def _ip(source=_IPS['guest'], mac=_MACS['guest']):
    return scapy.Ether(src=mac, dst=_MACS['peer']) / scapy.IP(
        src=source, dst=_IPS['peer'])


def _ip6(source=_IP6S['guest']):
    return scapy.Ether(src=_MACS['guest'], dst=_MACS['peer']) / scapy.IPv6(
        src=source, dst=_IP6S['peer'])


def _arp(**fields):
    sender = {'hwsrc': _MACS['guest'], 'psrc': _IPS['guest'],
              'pdst': _IPS['peer'], **fields}
    return scapy.Ether(src=_MACS['guest'], dst=_MACS['peer']) / scapy.ARP(
        **sender)


def _advertisement(target=_IP6S['guest'], mac=_MACS['guest']):
    return _ip6() / scapy.ICMPv6ND_NA(
        tgt=target) / scapy.ICMPv6NDOptDstLLAddr(lladdr=mac)


_UDP = scapy.UDP(sport=5000, dport=9)
_LAST = _ip() / _UDP / b'that is all'
#: A frame and the counter of its drop, or none if it passes.
_FRAMES = {
    'own address': (_ip() / _UDP, None),
    'own address of IPv6': (_ip6() / _UDP, None),
    'own ARP': (_arp(), None),
    'own advertisement': (_advertisement(), None),
    'long chain': (_ip6() / scapy.IPv6ExtHdrDestOpt() / _UDP, None),
    'address': (_ip(_OTHER_IP) / _UDP, 'spoof'),
    'address of IPv6': (_ip6(_OTHER_IP6) / _UDP, 'spoof'),
    'MAC': (_ip(mac=_OTHER_MAC) / _UDP, 'spoof'),
    'ARP sender': (_arp(op=2, psrc=_OTHER_IP), 'spoof'),
    'ARP hardware': (_arp(op=2, hwsrc=_OTHER_MAC), 'spoof'),
    'advertised target': (_advertisement(_OTHER_IP6), 'spoof'),
    'advertised MAC': (_advertisement(mac=_OTHER_MAC), 'spoof'),
    'router': (_ip6('fe80::ff:fe00:1') / scapy.ICMPv6ND_RA(), 'role'),
    'router behind a header': (
        _ip6('fe80::ff:fe00:1') / scapy.IPv6ExtHdrDestOpt()
        / scapy.ICMPv6ND_RA(), 'role'),
    'DHCP server': (_ip() / scapy.UDP(sport=67, dport=68), 'role'),
    'redirect': (_ip() / scapy.ICMP(type=5), 'role'),
    'source route': (
        scapy.Ether(src=_MACS['guest'], dst=_MACS['peer']) / scapy.IP(
            src=_IPS['guest'], dst=_IPS['peer'], options=[
                scapy.IPOption_LSRR(routers=[_OTHER_IP])]) / _UDP, 'role'),
    'tiny fragment': (
        scapy.Ether(src=_MACS['guest'], dst=_MACS['peer']) / scapy.IP(
            src=_IPS['guest'], dst=_IPS['peer'], flags='MF', proto=6)
        / (b'x' * 8), 'hidden'),
    'tag': (scapy.Ether(src=_MACS['guest'], dst=_MACS['peer'])
            / scapy.Dot1Q(vlan=5) / scapy.IP(src=_IPS['guest']), 'type'),
    'LLDP': (scapy.Ether(src=_MACS['guest'], dst=_MACS['peer'], type=0x88cc)
             / (b'x' * 50), 'type'),
    'link control': (
        scapy.Ether(src=_MACS['guest'], dst='01:80:c2:00:00:00', type=0x88cc)
        / (b'x' * 50), 'link_control'),
    'short': (_ip() / b'', None)}


class TcTest(unittest.TestCase):

    def setUp(self):
        super().setUp()
        self.stack = contextlib.ExitStack()
        self.addCleanup(self.stack.close)
        self.folder = pathlib.Path(self.stack.enter_context(
            contextlib.nullcontext(self._folder())))
        for name in ('host', 'guest', 'peer'):
            bare_host.run('ip', 'netns', 'add', f'tc-{name}')
            self.stack.callback(bare_host.run, 'ip', 'netns', 'delete',
                                f'tc-{name}')
        self._ip('host', 'link', 'add', 'br0', 'type', 'bridge')
        self._ip('host', 'link', 'set', 'br0', 'up')
        self._connect('peer', 'out')
        self._ip('host', 'link', 'set', 'out', 'up')

    def _folder(self):
        """Return a folder with a mounted BPF file system."""
        folder = pathlib.Path('/run/vale-tc-test')
        folder.mkdir()
        self.addCleanup(folder.rmdir)
        for name in ('maps', 'state'):
            (folder / name).mkdir()
            self.addCleanup((folder / name).rmdir)
        bare_host.run('mount', '-t', 'bpf', 'bpf', folder / 'maps')
        self.addCleanup(bare_host.run, 'umount', folder / 'maps')
        return folder

    def _ip(self, name, *command):
        bare_host.run('ip', '-n', f'tc-{name}', *command)

    def _connect(self, name, port):
        """Connect a machine to the bridge by a port that is down."""
        self._ip('host', 'link', 'add', port, 'type', 'veth', 'peer', 'name',
                 'eth0', 'netns', f'tc-{name}', 'address', _MACS[name])
        self._ip(name, 'link', 'set', 'eth0', 'addrgenmode', 'none')
        self._ip(name, 'address', 'add', f'{_IPS[name]}/24', 'dev', 'eth0')
        self._ip(name, 'address', 'add', f'{_IP6S[name]}/64', 'dev', 'eth0',
                 'nodad')
        self._ip(name, 'link', 'set', 'eth0', 'up')
        self._ip('host', 'link', 'set', port, 'master', 'br0')

    def _plug(self, **policy):
        """Connect the guest by a vif that has a policy before it is up."""
        self._connect('guest', 'vif')
        self._set(**policy)
        self.addCleanup(self._tc, 'clear', 'vif')
        self._ip('host', 'link', 'set', 'vif', 'up')

    def _tc(self, *command, text=None):
        """Run vale-tc in the host; return its output."""
        program = paths.State().binary('vale-tc')
        return subprocess.run(
            ['ip', 'netns', 'exec', 'tc-host', program,
             '--maps', self.folder / 'maps/tc',
             '--state', self.folder / 'state', *command], input=text,
            text=True, check=True, timeout=60, stdout=subprocess.PIPE).stdout

    def _set(self, **policy):
        document = {'mac': _MACS['guest'], 'allowed': [
            {'ip': f'{_IPS["guest"]}/32'}, {'ip': f'{_IP6S["guest"]}/128'}],
            **policy}
        self._tc('set', 'vif', '--policy', '-', text=json.dumps(document))

    def _shown(self):
        return json.loads(self._tc('show', 'vif'))

    def _start(self, name, script, *arguments):
        """Start a script in a namespace; it ends with the test."""
        process = subprocess.Popen(
            ['ip', 'netns', 'exec', f'tc-{name}', sys.executable, '-c',
             script, *arguments], stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, text=True)
        self.stack.callback(process.__exit__, None, None, None)
        self.stack.callback(process.kill)
        return process

    def _listen(self, script):
        """Start a script of the peer that tells when it listens."""
        process = self._start('peer', script)
        self.assertEqual('listens\n', process.stdout.readline())
        return process

    def _send(self, frames):
        sender = self._start('guest', _SEND)
        for frame in frames:
            sender.stdin.write(bytes(frame).hex() + '\n')
        sender.stdin.close()
        self.assertEqual(0, sender.wait(60))

    def _arrived(self, frames):
        """Send frames from the guest; return those that the peer gets."""
        receiver = self._listen(_RECEIVE)
        self._send([*frames, _LAST])
        return {line.strip() for line in receiver.stdout}

    def _ping(self, source, address, patience_s=60):
        return subprocess.run(
            ['ip', 'netns', 'exec', f'tc-{source}', 'ping', '-c', '2', '-i',
             '0.2', '-W', str(patience_s), address],
            stdout=subprocess.DEVNULL, check=False).returncode == 0

    def _is_silent(self, source, address):
        return not self._ping(source, address, 1)

    def test_spoofed_frames_do_not_leave_the_guest(self):
        self._plug()
        arrived = self._arrived(frame for frame, _ in _FRAMES.values())
        wanted = dict.fromkeys(self._shown()['counters'], 0)
        for name, (frame, drop) in _FRAMES.items():
            with self.subTest(name):
                # A frame in memory may be longer on a real network.
                found = any(line.startswith(bytes(frame).hex())
                            for line in arrived)
                self.assertEqual(drop is None, found)
            if drop:
                wanted[f'dropped_{drop}'] += 1
        self.assertEqual(wanted, self._shown()['counters'])

    def test_answers_pass_a_filter_and_a_new_one_ends_the_connection(self):
        egress = [{'direction': 'egress'}]
        self._plug(rules=egress)
        self.assertTrue(self._is_silent('peer', _IPS['guest']))
        for address in (_IPS['peer'], _IP6S['peer']):
            self.assertTrue(self._ping('guest', address), address)
        self._listen(_ECHO)
        asking = self._start('guest', _ASK, _IPS['peer'])
        self.assertEqual('connected\n', asking.stdout.readline())

        def ask(patience_s=60):
            asking.stdin.write(f'{patience_s}\n')
            asking.stdin.flush()
            return asking.stdout.readline().strip()
        self.assertEqual('answered', ask())
        before = self._shown()['rules'][0]['hits']
        self._set(rules=egress)
        self.assertEqual('answered', ask())
        self.assertEqual(before, self._shown()['rules'][0]['hits'])
        self._set(rules=[])
        self.assertEqual('silent', ask(1))
        self._set(rules=[{'direction': 'ingress', 'protocol': 1,
                          'remote': f'{_IPS["peer"]}/32'}])
        self.assertTrue(self._ping('peer', _IPS['guest']))
        self.assertTrue(self._is_silent('guest', _IP6S['peer']))

    def test_an_offloaded_rule_drops_for_the_guest(self):
        rule = f'drop src {_IPS["peer"]} proto 1'
        self._plug(offload={'guest': [rule], 'operator': ['pass proto 6']})
        self.assertTrue(self._is_silent('peer', _IPS['guest']))
        self.assertTrue(self._ping('peer', _IP6S['guest']))
        shown = self._shown()['offload']['guest']
        self.assertEqual([{'rule': f'{rule}', 'hits': 2}], shown)

    def test_a_change_leaves_no_moment_without_a_policy(self):
        self._plug()
        receiver = self._listen(_RECEIVE)
        wrong = bytes(_ip(_OTHER_IP) / _UDP).hex()
        sender = self._start('guest', _SEND)
        for n in range(_CHANGES):
            sender.stdin.write(f'{wrong}\n' * 2000)
            sender.stdin.flush()
            self._set(rules=[{'direction': 'egress'}] if n % 2 else None)
        sender.stdin.write(bytes(_LAST).hex() + '\n')
        sender.stdin.close()
        arrived = {line.strip() for line in receiver.stdout}
        self.assertIn(bytes(_LAST).hex(), arrived)
        self.assertNotIn(wrong, arrived)

    def test_a_cleared_vif_has_no_program(self):
        self._plug()
        self._tc('clear', 'vif')
        for way in ('ingress', 'egress'):
            found = subprocess.run(
                ['tc', '-n', 'tc-host', 'filter', 'show', 'dev', 'vif', way],
                stdout=subprocess.PIPE, check=True, text=True).stdout
            self.assertEqual('', found)
        self.assertEqual([], list((self.folder / 'state').iterdir()))
        self.assertEqual([], list((self.folder / 'maps/tc').iterdir()))
