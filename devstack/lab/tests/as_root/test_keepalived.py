# SPDX-License-Identifier: Apache-2.0
"""Our VRRP and keepalived as the two routers of one virtual router.

::

    host [eth0] === br0 === [eth0] keepalived
                     |
                   [eth0] click

Every box is a network namespace. The host records the advertisements, with
the kernel's times, and pings the virtual address.
"""

import contextlib
import dataclasses
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time
import unittest

from clickos_lab import apt
from clickos_lab import bare_host
from clickos_lab import bounds
from clickos_lab import paths
from clickos_lab import shell
from clickos_lab.vnf import control
from clickos_lab.vnf import programs

_VRID = 51
_NAMES = ('ours', 'peer', 'host')
_MACS = {'ours': '02:00:00:00:06:02', 'peer': '02:00:00:00:06:03',
         'host': '02:00:00:00:06:09'}
_PEER_PRIORITY, _HIGH, _LOW = 100, 200, 50
_INTERVAL_S = 0.2
_PATIENCE_S = 60
#: What keepalived logs when it hears advertisements.
_LISTENS = 'Entering BACKUP STATE'


@dataclasses.dataclass(frozen=True)
class Family:
    """What differs between IPv4 and IPv6.

    :param router: the first virtual address, which advertisements name
    :param virtual: the one that hosts ask
    :param mac: of the virtual router (RFC 9568, section 7.3)
    :param ips: of the routers as they advertise, and of the host
    :param length: of the prefixes of the host and keepalived
    :param answers: of ours to hosts, while it is the active router, from
        ``kind`` to ``out``
    :param offset: where a frame has the sender's address
    """

    number: int
    router: str
    virtual: str
    mac: str
    ips: dict
    length: int
    answers: str
    ethertype: int
    protocol_at: int
    offset: int


_IPV4 = Family(
    4, '10.1.6.1', '10.1.6.1', f'00:00:5e:00:01:{_VRID:02x}',
    {'ours': '10.1.6.2', 'peer': '10.1.6.3', 'host': '10.1.6.9'}, 24, '''
kind :: Classifier(12/0806 20/0001, 12/0800, -);
kind[0] -> ARPResponder({virtual} {mac}) -> out;
kind[1] -> MarkIPHeader(14)
    -> pings :: IPClassifier(dst host {virtual} and icmp type echo, -);
pings[0] -> ICMPPingResponder -> EtherMirror -> out;
pings[1] -> Discard;
kind[2] -> Discard;
''', 0x0800, 23, 26)
_IPV6 = Family(
    6, 'fe80::200:5eff:fe00:233', '2001:db8:6::1',
    f'00:00:5e:00:02:{_VRID:02x}',
    {'ours': 'fe80::2', 'peer': 'fe80::3', 'host': '2001:db8:6::9'}, 64, '''
kind :: Classifier(12/86dd 20/3a 54/87, 12/86dd 20/3a 54/80, -);
kind[0] -> IP6NDAdvertiser({virtual}/128 {mac}) -> out;
kind[1] -> eth :: Strip(14) -> CheckIP6Header -> own :: ICMP6PingResponder
    -> Unstrip(14) -> EtherMirror -> out;
own[1] -> Discard;
kind[2] -> Discard;
''', 0x86dd, 20, 22)
_OURS = '''
vrrp :: VRRP({vrid} {ip} {own_mac} - - {addresses},
             PRIORITY {priority}, INTERVAL {interval_s}, PREEMPT {preempts});
out :: Queue -> VRRPGate(vrrp) -> ToDevice(eth0);
'''
_ARRIVE = '''
FromDevice(eth0) -> port :: VRRPPort(vrrp, 0) -> kind;
port[1] -> ToDevice(eth0);
'''
#: With ``accept`` it answers pings; the others are as RFC 9568 says.
_PEER = f'''
global_defs {{{{
    vrrp_version 3
    script_user root
}}}}
vrrp_instance pair {{{{
    state BACKUP
    interface eth0
    virtual_router_id {_VRID}
    priority {_PEER_PRIORITY}
    advert_int {_INTERVAL_S}
    use_vmac vrrp
    accept
    virtual_ipaddress {{{{
        {{addresses}}
    }}}}
}}}}
'''
#: Prints each advertisement: time, MAC and address of the sender, priority.
#: Its arguments are the EtherType and where a frame has the protocol, the
#: sender and the priority.
_RECORD = '''
import ipaddress, json, socket, struct, sys
ethertype, protocol_at, offset = map(int, sys.argv[1:])
width = 4 if ethertype == 0x0800 else 16
found = socket.socket(socket.AF_PACKET, socket.SOCK_RAW,
                      socket.htons(ethertype))
found.bind(("eth0", ethertype))
found.setsockopt(socket.SOL_SOCKET, 35, 1)      # SO_TIMESTAMPNS
found.settimeout(60)
print("listens", flush=True)
while True:
    frame, more, _, _ = found.recvmsg(2048, 64)
    if frame[protocol_at] == 112:
        seconds, ns = struct.unpack("qq", more[0][2])
        ip = ipaddress.ip_address(frame[offset:offset + width])
        print(json.dumps([seconds + ns / 1e9, frame[6:12].hex(":"), str(ip),
                          frame[offset + 2 * width + 2]]), flush=True)
'''


@dataclasses.dataclass(frozen=True)
class Advertisement:
    """A message of a router, as the host received it."""

    at_s: float
    mac: str
    ip: str
    priority: int


class KeepalivedTest(unittest.TestCase):

    family = _IPV4

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        state = paths.State()
        state.create()
        apt.ensure(state, apt.PAIR_PACKAGES)
        cls.click = programs.path('click')

    def setUp(self):
        super().setUp()
        self.stack = contextlib.ExitStack()
        self.addCleanup(self.stack.close)
        self.folder = pathlib.Path(
            self.stack.enter_context(tempfile.TemporaryDirectory()))
        (self.folder / 'log').touch()
        for name in ('switch', *_NAMES):
            bare_host.run('ip', 'netns', 'add', self._namespace(name))
            self.stack.callback(bare_host.run, 'ip', 'netns', 'delete',
                                self._namespace(name))
        self._ip('switch', 'link', 'add', 'br0', 'type', 'bridge')
        self._ip('switch', 'link', 'set', 'br0', 'up')
        for name in _NAMES:
            self._connect(name)
        for name in ('host', 'peer'):   # ours answers for its own address
            self._add_address(name, self.family.ips[name])
        if self.family is _IPV6:        # a way to the host
            self._add_address('peer', '2001:db8:6::3')
        # as keepalived asks of a host with virtual MACs: its other
        # interface neither answers nor asks from the virtual address
        bare_host.run('ip', 'netns', 'exec', self._namespace('peer'),
                      'sysctl', '-q', '-w', 'net.ipv4.conf.all.arp_ignore=1',
                      'net.ipv4.conf.all.arp_announce=2')
        self.control, self._heard = None, {}
        self._recorder = self._start(
            'host', sys.executable, '-c', _RECORD,
            self.family.ethertype, self.family.protocol_at,
            self.family.offset)
        self.assertEqual('listens\n', self._recorder.stdout.readline())

    def _namespace(self, name):
        return f'pair{os.getpid()}-{name}'

    def _ip(self, name, *command):
        bare_host.run('ip', '-n', self._namespace(name), *command)

    def _add_address(self, name, ip):
        self._ip(name, 'address', 'add', f'{ip}/{self.family.length}', 'dev',
                 'eth0', *(['nodad'] if self.family is _IPV6 else []))

    def _connect(self, name):
        self._ip('switch', 'link', 'add', name, 'type', 'veth', 'peer',
                 'name', 'eth0', 'netns', self._namespace(name), 'address',
                 _MACS[name])
        self._ip('switch', 'link', 'set', name, 'master', 'br0', 'up')
        self._ip(name, 'link', 'set', 'eth0', 'addrgenmode', 'none')
        self._ip(name, 'link', 'set', 'lo', 'up')
        self._ip(name, 'link', 'set', 'eth0', 'up')

    def _start(self, name, *command, log=subprocess.PIPE):
        """Start a program in a namespace; it ends with the test."""
        process = subprocess.Popen(
            ['ip', 'netns', 'exec', self._namespace(name),
             *map(str, command)], stdin=subprocess.DEVNULL, stdout=log,
            stderr=subprocess.STDOUT, text=True, start_new_session=True)
        self.stack.callback(process.__exit__, None, None, None)
        self.stack.callback(self._kill, process)
        return process

    def _kill(self, process):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)

    def _start_ours(self, priority, preempts='true'):
        file, listener = self.folder / 'ours.click', self.folder / 'control'
        family = self.family
        file.write_text((_OURS + family.answers + _ARRIVE).format(
            vrid=_VRID, ip=family.ips['ours'], own_mac=_MACS['ours'],
            addresses=' '.join(self._addresses()), priority=priority,
            interval_s=_INTERVAL_S, preempts=preempts,
            virtual=family.virtual, mac=family.mac))
        listener.unlink(missing_ok=True)
        self.ours = self._start('ours', self.click, '-f', file, '-u',
                                listener)
        self.control = control.Control(listener)
        self.stack.callback(self.control.close)

    def _addresses(self):
        return list(dict.fromkeys([self.family.router,
                                   self.family.virtual]))

    def _start_peer(self):
        file = self.folder / 'keepalived.conf'
        file.write_text(_PEER.format(addresses='\n        '.join(
            f'{each}/{128 if self.family is _IPV6 else 32}'
            for each in self._addresses())))
        log = self.stack.enter_context(open(self.folder / 'log', 'a'))
        self.peer = self._start(
            'peer', 'keepalived', '--dont-fork', '--log-console', '--vrrp',
            '--use-file', file, '--pid', self.folder / 'pid', '--vrrp_pid',
            self.folder / 'vrrp-pid', log=log)

    def _start_both(self, priority, active, **options):
        """Start ours with a priority, then keepalived, until one is active.

        Over IPv4, until keepalived has sent something, it drops our messages
        for the kind of their sum, and both may be active.
        """
        self._start_ours(priority, **options)
        self._start_peer()
        if self.family is _IPV4:
            self._next(lambda each: each.ip == self.family.ips['peer'])
        self._until(lambda: _LISTENS in (self.folder / 'log').read_text(),
                    True)
        self._next_of(active, _PEER_PRIORITY, priority)
        self._wait_for(active)

    def _active(self):
        """Return the names of the routers that say they are active."""
        shown = shell.output(['ip', '-n', self._namespace('peer'), '-o',
                              'address', 'show', 'to', self.family.virtual])
        found = {'peer'} if self.family.virtual in shown else set()
        if self.control and self.control.read('vrrp.state') == 'active':
            found.add('ours')
        return found

    def _until(self, value, wanted):
        """Wait until a function returns what is wanted."""
        end_s = time.monotonic() + _PATIENCE_S
        while (found := value()) != wanted:
            if time.monotonic() > end_s:
                log = (self.folder / 'log').read_text()
                self.fail(f'{found}, wanted {wanted}\n{log}')
            time.sleep(0.02)

    def _wait_for(self, *names):
        """Wait until these routers are active, and no others."""
        self._until(self._active, set(names))

    def _next(self, condition):
        """Return the next advertisement for which a condition is true."""
        end_s = time.time() + _PATIENCE_S
        for line in self._recorder.stdout:
            found = Advertisement(*json.loads(line))
            self._heard[found.ip] = found
            if condition(found):
                return found
            if found.at_s > end_s:
                break
        self.fail(f'no such advertisement; the last ones: {self._heard}')

    def _next_of(self, name, *priorities):
        """Return the next one of a router, with any of some priorities."""
        return self._next(lambda each: each.ip == self.family.ips[name]
                          and each.priority in priorities)

    def _silence_s(self, old, new, since_s):
        """Return the time between the last one of a router and the next."""
        found = self._next(lambda each: each.ip == self.family.ips[new]
                           and each.at_s > since_s)
        return found.at_s - self._heard[self.family.ips[old]].at_s

    def _assert_answers(self, name):
        """The virtual address is this router's, with the virtual MAC.

        A last frame of the other router may mislead the bridge until the
        next advertisement.
        """
        self._until(self._pings, True)
        self._until(self._ports, [name])
        shown = shell.output(['ip', '-n', self._namespace('host'),
                              'neighbor', 'show', 'to', self.family.virtual])
        self.assertIn(f'lladdr {self.family.mac} ', shown)

    def _pings(self):
        return subprocess.run(
            ['ip', 'netns', 'exec', self._namespace('host'), 'ping', '-n',
             '-q', '-c', '1', '-W', '1', self.family.virtual],
            stdout=subprocess.DEVNULL, check=False).returncode == 0

    def _ports(self):
        """Return where the bridge has the virtual MAC."""
        shown = json.loads(shell.output(
            ['bridge', '-n', self._namespace('switch'), '-j', 'fdb', 'show',
             'br', 'br0']))
        return [each['ifname'] for each in shown
                if each['mac'] == self.family.mac]

    def test_the_higher_priority_is_active(self):
        self._start_peer()
        self._wait_for('peer')
        self._assert_answers('peer')
        self._start_ours(_HIGH)
        self._wait_for('ours')
        self._assert_answers('ours')
        found = self._next_of('ours', _HIGH)
        self.assertEqual(self.family.mac, found.mac)
        self.control.write('vrrp.priority', str(_LOW))
        self._wait_for('peer')
        self._assert_answers('peer')
        found = self._next_of('peer', _PEER_PRIORITY)
        self.assertEqual(self.family.mac, found.mac)
        self.control.write('vrrp.priority', str(_HIGH))
        self._wait_for('ours')

    def test_keepalived_takes_over_from_a_killed_guest(self):
        self._start_both(_HIGH, 'ours')
        self.control, killed_s = None, time.time()
        self._kill(self.ours)
        silence_s = self._silence_s('ours', 'peer', killed_s)
        self._wait_for('peer')
        self._assert_answers('peer')
        bounds.hold('max_takeover_silence_seconds', silence_s)

    def test_a_guest_takes_over_from_a_killed_keepalived(self):
        self._start_both(_LOW, 'peer')
        killed_s = time.time()
        self._kill(self.peer)
        # the kernel keeps the addresses of a killed keepalived
        self._ip('switch', 'link', 'set', 'peer', 'down')
        silence_s = self._silence_s('peer', 'ours', killed_s)
        self._wait_for('ours', 'peer')
        self._assert_answers('ours')
        bounds.hold('max_takeover_silence_seconds', silence_s)

    def test_a_clean_end_of_keepalived_is_honored(self):
        self._start_both(_LOW, 'peer')
        self.peer.send_signal(signal.SIGTERM)
        leaves = self._next_of('peer', 0)
        follows = self._next_of('ours', _LOW)
        # three intervals pass only if the last message does not count
        self.assertLess(follows.at_s - leaves.at_s, 3 * _INTERVAL_S)
        self._wait_for('ours')
        self._assert_answers('ours')

    def test_a_guest_that_resigns_is_honored(self):
        self._start_both(_HIGH, 'ours', preempts='false')
        self.control.write('vrrp.resign', '')
        leaves = self._next_of('ours', 0)
        follows = self._next_of('peer', _PEER_PRIORITY)
        self.assertLess(follows.at_s - leaves.at_s, 3 * _INTERVAL_S)
        self._wait_for('peer')
        self._assert_answers('peer')

    def test_one_is_active_after_a_split(self):
        self._start_both(_HIGH, 'ours')
        self._isolate('on')
        self._wait_for('ours', 'peer')
        self._isolate('off')
        self._wait_for('ours')
        self._assert_answers('ours')

    def _isolate(self, isolated):
        """Let no frame pass between the routers, or let them pass again."""
        for name in ('ours', 'peer'):
            bare_host.run('bridge', '-n', self._namespace('switch'), 'link',
                          'set', 'dev', name, 'isolated', isolated)


class Keepalived6Test(KeepalivedTest):
    """The same over IPv6: link-local routers, the group ff02::12."""

    family = _IPV6
