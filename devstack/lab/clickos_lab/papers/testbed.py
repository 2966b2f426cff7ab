# SPDX-License-Identifier: Apache-2.0
"""A process host with guests that send, forward and count."""

import contextlib
import itertools
import json
import os
import subprocess
import time
import uuid

from clickos_lab import bare_host
from clickos_lab.papers import figure

#: Seconds of one measured value, and before the first one.
_BURST_S = 0.5
_WARM_S = 0.2
SLOTS = 1024
_MEMORY_MIB = 16
#: Bytes of a frame check sequence: sizes count it, frames lack it.
FCS = 4

_runs = itertools.count()


def mac(number):
    """Return the MAC address of a port."""
    return f'02:00:00:01:{number >> 8:02x}:{number & 255:02x}'


def frame(size, source, target, ip_source='10.9.1.9', ip_target='10.9.2.9'):
    """Return a UDP frame as Click's hexadecimal data.

    :param size: bytes on the wire, with the frame check sequence
    :param source: MAC address
    :param target: MAC address
    """
    length = size - FCS - 14
    header = bytes.fromhex('4500') + length.to_bytes(2, 'big') + \
        bytes.fromhex('00000000401100 00') + _ip(ip_source) + _ip(ip_target)
    header = header[:10] + _checksum(header) + header[12:]
    udp = (1024).to_bytes(2, 'big') + (80).to_bytes(2, 'big') + \
        (length - 20).to_bytes(2, 'big') + bytes(2)
    whole = bytes.fromhex((target + source).replace(':', '')) + \
        b'\x08\x00' + header + udp
    return rf'\<{whole.ljust(size - FCS, bytes(1)).hex()}>'


def _ip(address):
    return bytes(map(int, address.split('.')))


def _checksum(header):
    total = sum(int.from_bytes(header[at:at + 2], 'big')
                for at in range(0, len(header), 2))
    while total >> 16:
        total = (total & 0xffff) + (total >> 16)
    return (total ^ 0xffff).to_bytes(2, 'big')


class Testbed:
    """A host; a context manager that ends everything.

    :param state: paths.State with release binaries
    :param options: of bare_host.Host
    """

    def __init__(self, state, **options):
        self._state, self._options = state, options
        self._stack = contextlib.ExitStack()
        self._ports = itertools.count(1)

    def __enter__(self):
        first_uid = 1_000_000 + (os.getpid() * 8 + next(_runs)) % 50_000 * 1000
        with contextlib.ExitStack() as stack:
            self.host = bare_host.Host(self._state, 'papers', first_uid,
                                       stack, **self._options)
            self.client = self.host.client
            self._engine = self.client.call('host')['engine_sha256']
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *_error):
        self._stack.close()

    def vif(self, segment, slots=SLOTS):
        """Return an interface in a segment of the switch."""
        number = next(self._ports)
        return {'devid': 0, 'mac': mac(number), 'switch': 'vale0',
                'port': f'p{number}', 'segment': segment, 'allowed': [],
                'port_security': False, 'mtu': 1500, 'slots': slots}

    def boot(self, config, *vifs, writes=()):
        """Start a guest; return its id."""
        name = str(uuid.uuid4())
        self.client.call(
            'create', uuid=name, name=name, image_sha256=self._engine,
            memory_mib=_MEMORY_MIB,
            vifs=[{**vif, 'devid': devid} for devid, vif in enumerate(vifs)],
            config=config, config_name='papers.click', writes=writes)
        return name

    def source(self, data, vif):
        """Start a guest that sends a frame as fast as its port takes it."""
        return self.boot(f'InfiniteSource(DATA {data}, LIMIT -1, BURST 32) '
                         '-> Queue(256) -> ToDevice(0);', vif)

    def sink(self, vif):
        """Start a guest that counts what it receives."""
        return self.boot('FromDevice(0) -> c :: Counter -> Discard;', vif)

    def counted(self, guest, counter='c'):
        """Return how many packets a guest's counter has seen."""
        return int(self.client.call('handler-read', uuid=guest,
                                    name=f'{counter}.count')['value'])

    def taken(self, guest):
        """Return how many packets the switch has taken from a guest."""
        port = self.client.call('vif-list', uuid=guest)['ports'][0]
        return port['counters']['rx_packets']

    def rates(self, *guests, read=None):
        """Return rates of guests, a list of bursts for each.

        :param read: returns a guest's count of packets, by default of a sink
        :returns: packets a second
        """
        read = read or self.counted
        time.sleep(_WARM_S)
        seen = [[_timed(read, guest) for guest in guests]]
        for _ in range(figure.REPEATS):
            time.sleep(_BURST_S)
            seen.append([_timed(read, guest) for guest in guests])
        return [[(b - a) / (after_s - before_s)
                 for (a, before_s), (b, after_s)
                 in itertools.pairwise(one)] for one in zip(*seen)]

    def pkt_gen(self, function, vif, *more):
        """Start pkt-gen at a port of its own.

        :param vif: as of :meth:`vif`
        """
        process = subprocess.Popen(
            [self._state.binary('pkt-gen'), '-f', function, '-i',
             f'vale0:{vif["port"]}', f'--segment={vif["segment"]}',
             f'--mac={vif["mac"]}', f'--slots={vif["slots"]}',
             f'--socket={self.host.folder}/valed.sock', '-o', 'json',
             *map(str, more)],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL, text=True)
        self._stack.callback(process.__exit__, None, None, None)
        self._stack.callback(process.kill)
        return process

    def received(self, vifs, start):
        """Return what pkt-gens receive together, a rate for each burst.

        :param start: called when they receive; returns processes that send
        """
        rates = []
        for _ in range(figure.REPEATS):
            sinks = [self.pkt_gen('rx', vif, '--seconds', 1) for vif in vifs]
            senders = start()
            rates.append(sum(report(sink)['pps'] for sink in sinks))
            for sender in senders:
                end(sender)
        return rates


def _timed(read, guest):
    """Return a count, and the middle of the time in which it was read."""
    before_s = time.monotonic()
    count = read(guest)
    return count, (before_s + time.monotonic()) / 2


def report(process):
    """Return what pkt-gen says at its end."""
    return json.loads(process.communicate()[0])


def end(process):
    """End a program that was started."""
    process.kill()
    process.wait()
