# SPDX-License-Identifier: Apache-2.0
"""A Linux guest sends to another: over stock netback, and over valed.

Instructions by domain, each with those of Xen for it. A figure is the
difference of two counts of frames, so it has no fixed costs. Figure 8 and
Table 2 of the ClickOS paper (NSDI 2014) have the same subject.
"""

import collections
import dataclasses

from clickos_lab.xen import linux
from clickos_lab.xen import netback
from clickos_lab.xen import qemu
from clickos_lab.xen import toolstack
from tests.figures import netback_steps

#: Frame lengths without check sum, as Linux counts: 64 bytes are 60.
_LENGTHS = (60, 124, 252, 508, 1020, 1514)
_FEW, _MANY = 4000, 16000
#: Frames in a system call, and the pause after it: as fast as possible, or
#: a batch of the paper's Table 2.
_FAST, _BATCHES = (64, 0), (32, 2000)
_IN_BATCHES = (60, 1514)
_STREAM = (4 << 20, 16 << 20)
_SINK_PORT = 9
_CONTROL, _DATA = 'br0', 'br1'
_NAMESPACE, _DOM0 = 'a', 0
_SEGMENT = 5
#: The address that a guest takes for itself, so that its kernel drops
#: frames to its port at the entrance of IP: they are another host's.
_OTHER_MAC = '02:00:00:00:00:99'
_DROP = f"""
ifconfig eth0 down
ifconfig eth0 hw ether {_OTHER_MAC}
ifconfig eth0 up
"""
_AWAIT_PEER = """
until ping -c 1 -W 1 {address} >/dev/null; do sleep 0.1; done
echo yes
"""


@dataclasses.dataclass(frozen=True)
class _Way:
    """The device of both guests.

    :ivar vif: of an xl configuration; None: a port that vale-ctl makes
    :ivar patched: with the patched netback
    """

    name: str
    vif: str | None
    patched: bool = False


_WAYS = (
    _Way('stock vif', f'bridge={_DATA},mac={{}}'),
    _Way('vale', None),
    _Way('stock vif with mapped pages', f'bridge={_DATA},mac={{}}',
         patched=True),
    _Way('vif-vale', f'script=vif-vale,bridge=vale0.{_SEGMENT},mac={{}}',
         patched=True))


@dataclasses.dataclass(frozen=True)
class _Sent:
    """Frames or bytes that were sent, and their costs.

    :ivar used: instructions by domain
    :ivar arrived: frames, or bytes of a stream
    """

    used: dict
    arrived: int
    seconds: float

    def less(self, other):
        """Return the difference to a smaller measurement."""
        used = {who: self.used[who] - other.used[who] for who in self.used}
        return _Sent(used, self.arrived - other.arrived,
                     self.seconds - other.seconds)


def measure(host, table):
    """Fill the table's part."""
    toolstack.start(host, 'valed')
    host.dom0.check(
        f'set -e; lab-net bridge {_CONTROL}; lab-net bridge {_DATA}; '
        f'lab-net endpoint {_CONTROL} {_NAMESPACE} 10.1.0.1/24')
    peers = {}
    for way in _WAYS:
        if way.patched:
            _patch(host)
        with Pair(host, way) as pair:
            for (what, unit), value in pair.figures():
                peer = peers.setdefault(what, value)
                table.add(f'{what}, {way.name}', value, unit, peer)
            if way is _WAYS[-1]:
                _measure_patched(host, pair, table)


def _measure_patched(host, pair, table):
    """Measure the rest with guests whose eth1 is on the patched netback."""
    for length in _IN_BATCHES:
        table.add(f"{length} bytes, the sender's program and system call "
                  'alone', pair.alone(length), 'instructions')
    netback_steps.measure(host, pair, table)


def _patch(host):
    """Load the patched netback in place of the kernel's."""
    host.dom0.check(f'rmmod xen_netback && insmod {netback.MODULE}')


class _Guest:
    """One of the two."""

    def __init__(self, host, number, way):
        self._dom0, self._way = host.dom0, way
        self.name = f'linux{number}'
        self.mac, self.stock_mac = (f'00:16:3e:02:{devid:02x}:{number:02x}'
                                    for devid in (0, 1))
        self.vale, self._stock = f'10.2.0.{number}', f'10.1.0.1{number}'
        self.domid = None

    def create(self):
        """Create it and wait until it takes scripts."""
        control = f'bridge={_CONTROL},mac={self.stock_mac}'
        vifs = [self._way.vif.format(self.mac), control] \
            if self._way.vif else [control]
        path = f'/root/{self.name}.cfg'
        self._dom0.put_text(
            linux.config(self.name, self.vale, self._stock, vifs), path)
        self._dom0.check(f'xl create -q -p -e {path}', timeout_s=300)
        self.domid = int(self._dom0.check(f'xl domid {self.name}'))
        if not self._way.vif:
            self._vale('attach', f'vale0:{self.name}', '--segment', _SEGMENT,
                       '--kind', 'xen', '--domid', self.domid, '--devid', 0,
                       '--mac', self.mac)
        self._dom0.check(f'xl unpause {self.name}')
        self._dom0.check(
            f'until ip netns exec {_NAMESPACE} ping -c 1 -W 1 '
            f'{self._stock} >/dev/null; do :; done', timeout_s=300)
        self.run(f'{linux.NET} sink {_SINK_PORT} >/dev/null 2>&1 </dev/null '
                 '&')
        return self

    def destroy(self):
        """End it and its port."""
        self._dom0.check(f'xl destroy {self.name}', timeout_s=120)
        if not self._way.vif:
            self._vale('detach', f'vale0:{self.name}')

    def run(self, script):
        """Run a script in it; return its output."""
        return linux.run(self._dom0, _NAMESPACE, self._stock, script)

    def received(self):
        """Return the frames that its device has received."""
        return int(self.run('cat /sys/class/net/eth0/statistics/rx_packets'))

    def _vale(self, *arguments):
        return self._dom0.check(toolstack.command('vale-ctl', *arguments))


class Pair:
    """Two guests, of which one sends to the other."""

    def __init__(self, host, way):
        self._dom0, self._way = host.dom0, way
        self.source, self._sink = (_Guest(host, number, way)
                                   for number in (1, 2))

    def __enter__(self):
        self._sink.create()
        self.source.create()
        self._await_peer()
        return self

    def __exit__(self, *_):
        for made in (self.source, self._sink):
            made.destroy()

    def _await_peer(self):
        self.source.run(_AWAIT_PEER.format(address=self._sink.vale))

    def figures(self):
        """Give the figures by name and unit."""
        yield from self._stream_figures('TCP stream')
        self.source.run(f'{linux.NET} plain eth0')
        yield from self._stream_figures('TCP stream without offload')
        for made in (self.source, self._sink):
            made.run(_DROP)
        for length in _LENGTHS:
            yield from self._frame_figures(length, _FAST, 'as fast as '
                                           'possible')
        for length in _IN_BATCHES:
            yield from self._frame_figures(length, _BATCHES,
                                           f'in batches of {_BATCHES[0]}')

    def _stream_figures(self, what):
        few, many = (self._stream(size) for size in _STREAM)
        cost = many.less(few)
        yield (what, 'Mb/s'), cost.arrived * 8e-6 / cost.seconds
        for who, used in _with_sum(cost.used).items():
            yield (f'{what}, {who}', 'instructions/KiB'), \
                used * 1024 / cost.arrived

    def _stream(self, size):
        before = self._used()
        seconds = float(self.source.run(
            f'{linux.NET} stream {self._sink.vale} {_SINK_PORT} {size}'))
        return _Sent(self._used_since(before), size, seconds)

    def _frame_figures(self, length, how, words):
        few, many = (self._send(length, count, *how)
                     for count in (_FEW, _MANY))
        cost = many.less(few)
        what = f'{length} bytes {words}'
        yield (what, 'frames/s'), cost.arrived / cost.seconds
        yield (f'{what}, arrived', '%'), \
            100 * cost.arrived / (_MANY - _FEW)
        for who, used in _with_sum(cost.used).items():
            yield (f'{what}, {who}', 'instructions'), used / cost.arrived

    def _send(self, length, count, burst, pause_us):
        received, before = self._sink.received(), self._used()
        seconds = float(self.send(length, count, burst, pause_us))
        used = self._used_since(before)
        return _Sent(used, self._sink.received() - received, seconds)

    def alone(self, length):
        """Return the sender's instructions for a device that drops all."""
        used = []
        for count in (_FEW, _MANY):
            before = self._used()
            self.send(length, count, *_FAST, device='dummy0')
            used.append(self._used_since(before)['sender'])
        return (used[1] - used[0]) / (_MANY - _FEW)

    def send(self, length, count, burst, pause_us, device='eth0'):
        """Send frames; return what the program prints."""
        ends = [made.stock_mac if device == netback_steps.DEVICE else made.mac
                for made in (self.source, self._sink)]
        return self.source.run(f'{linux.NET} send {device} {" ".join(ends)} '
                               f'{length} {count} {burst} {pause_us}')

    def _used_since(self, before):
        return {who: used - before[who] for who, used in self._used().items()}

    def _used(self):
        """Return the instructions of each domain so far.

        What came before has to end: a script, or frames on their way.
        """
        # This clock skips time without work.
        self._dom0.check('sleep 2')
        domains = {'sender': self.source.domid, 'receiver': self._sink.domid,
                   'dom0': _DOM0}
        out = self._dom0.check('; '.join(
            f'/root/timing cpu {domid}' for domid in domains.values()))
        return collections.OrderedDict(
            (who, float(ns) / qemu.INSTRUCTION_NS)
            for who, ns in zip(domains, out.split()))


def _with_sum(used):
    return {**used, 'all': sum(used.values())}
