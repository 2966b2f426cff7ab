# SPDX-License-Identifier: Apache-2.0
"""Stations at the vifs of a VNF, which send and receive whole frames."""

import ctypes
import os
import select
import socket
import threading
import time

from scapy import all as scapy

from clickos_lab import errors

_CLONE_NEWNET = 0x40000000
_ALL_PROTOCOLS = socket.htons(3)
_PATIENCE_S = 20
_FRAME = 65535


class Station:
    """A host with addresses of its own, which the kernel does not know.

    A thread reads its frames, answers questions for its addresses and pings,
    and keeps the others.

    :param namespace: where its link eth0 is
    :param macs: its Ethernet address
    :param ips: its IPv4 addresses, then those of IPv6
    """

    def __init__(self, namespace, mac, *ips):
        self.mac, self.ips = mac, ips
        self._socket = _open(namespace)
        self._frames, self._changed = [], threading.Condition()
        self._ends, self._end = os.pipe()
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    @property
    def ip(self):
        """Its first address."""
        return self.ips[0]

    def close(self):
        """End the thread."""
        os.close(self._end)
        self._thread.join()
        os.close(self._ends)
        self._socket.close()

    def send(self, frame):
        """Send a frame of scapy, or its bytes."""
        self._socket.send(bytes(frame))

    def send_ip(self, packet, to):
        """Send an IP packet to an Ethernet address."""
        self.send(scapy.Ether(src=self.mac, dst=to) / packet)

    def mark(self):
        """Return the place from which :meth:`expect` looks."""
        with self._changed:
            return len(self._frames)

    def expect(self, wanted, what, since=0):
        """Wait for a frame; return what ``wanted`` makes from it if true.

        :raises LabError: if none comes
        """
        deadline_s = time.monotonic() + _PATIENCE_S
        at = since
        with self._changed:
            while True:
                while at < len(self._frames):
                    if found := wanted(self._frames[at]):
                        return found
                    at += 1
                left_s = deadline_s - time.monotonic()
                if left_s <= 0 or not self._changed.wait(left_s):
                    raise errors.LabError(
                        f'{what}: no such frame; {at - since} others: '
                        + '; '.join(f.summary()
                                    for f in self._frames[since:][-8:]))

    def found(self, wanted, since=0):
        """Return what ``wanted`` says of the frames so far, if true."""
        with self._changed:
            return [made for made in map(wanted, self._frames[since:])
                    if made]

    def _read(self):
        while True:
            ready, _, _ = select.select([self._socket, self._ends], [], [])
            if self._ends in ready:
                return
            data, (_, _, kind, _, _) = self._socket.recvfrom(_FRAME)
            if kind == socket.PACKET_OUTGOING:
                continue
            frame = scapy.Ether(data)
            self._answer(frame)
            with self._changed:
                self._frames.append(frame)
                self._changed.notify_all()

    def _answer(self, frame):
        arp = frame.getlayer(scapy.ARP)
        if arp and arp.op == 1 and arp.pdst in self.ips:
            self.send(scapy.Ether(src=self.mac, dst=arp.hwsrc) / scapy.ARP(
                op=2, hwsrc=self.mac, psrc=arp.pdst, hwdst=arp.hwsrc,
                pdst=arp.psrc))
        asked = frame.getlayer(scapy.ICMP)
        if asked and asked.type == 8 and frame[scapy.IP].dst in self.ips:
            packet = frame[scapy.IP].copy()
            packet.src, packet.dst = packet.dst, packet.src
            packet[scapy.ICMP].type = 0
            packet[scapy.ICMP].chksum = packet.chksum = None
            self.send_ip(packet, frame.src)
        self._answer6(frame)

    def _answer6(self, frame):
        packet = frame.getlayer(scapy.IPv6)
        asked = frame.getlayer(scapy.ICMPv6ND_NS)
        if asked and asked.tgt in self.ips:
            self.send_ip(
                scapy.IPv6(src=asked.tgt, dst=packet.src, hlim=255)
                / scapy.ICMPv6ND_NA(tgt=asked.tgt, R=0, S=1, O=1)
                / scapy.ICMPv6NDOptDstLLAddr(lladdr=self.mac), frame.src)
        ping = frame.getlayer(scapy.ICMPv6EchoRequest)
        if ping and packet.dst in self.ips:
            self.send_ip(
                scapy.IPv6(src=packet.dst, dst=packet.src)
                / scapy.ICMPv6EchoReply(id=ping.id, seq=ping.seq,
                                        data=ping.data), frame.src)


def _open(namespace):
    """Return a packet socket in a namespace: a thread goes there for it."""
    made = []

    def opens():
        with open(f'/run/netns/{namespace}', 'rb') as file:
            libc = ctypes.CDLL(None, use_errno=True)
            if libc.setns(file.fileno(), _CLONE_NEWNET):
                return
        found = socket.socket(socket.AF_PACKET, socket.SOCK_RAW,
                              _ALL_PROTOCOLS)
        found.bind(('eth0', 0))
        made.append(found)
    thread = threading.Thread(target=opens)
    thread.start()
    thread.join()
    if not made:
        raise errors.LabError(f'{namespace}: no packet socket')
    return made[0]
