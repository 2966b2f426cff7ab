# SPDX-License-Identifier: Apache-2.0
"""Files in a guest's memory: a configuration's archive, and what comes out."""

import pathlib
import struct
import subprocess
import tempfile

from clickos_lab.vnf import programs
from tests.xen import base
from tests.xen import guest

_FIREWALL = """\
FromDump(in.pcap, STOP true) -> CheckIPHeader(14) -> fw :: IPFilter(
allow udp && dst port 53, allow tcp && dst port 443, deny all)
-> passed :: Counter -> ToDump(out.pcap);
"""
_HEADER = struct.pack('<IHHiIII', 0xa1b2c3d4, 2, 4, 0, 0, 2000, 1)
#: More than one piece of an answer, and of what can be read at a time.
_FRAMES = 1000
_UDP, _TCP = 17, 6


class FilesTest(base.XenTest):

    @classmethod
    def add_files(cls, contents):
        super().add_files(contents)
        cls.click = programs.path('click')

    def test_a_capture_goes_through_a_firewall(self):
        one = guest.Guest(self.dom0, 'files', 'pvh')
        one.create()
        records = [_record(n) for n in range(_FRAMES)]
        archive = _archive({'in.pcap': _HEADER + b''.join(records),
                            'config': _FIREWALL.encode()})
        self.assertEqual(('Running', ''), one.install(archive))
        self.wait_for(lambda: one.read_handler('passed.count') == '500')
        passed = _HEADER + b''.join(
            record for n, record in enumerate(records) if _passes(n))
        self.assertIn(f'{len(passed)} out.pcap', one.read_handler('files'))
        self.assertEqual(passed, one.read_file('out.pcap'))
        self.assertEqual(passed, self._by_click(_FIREWALL, _HEADER
                                                + b''.join(records)))

    def _by_click(self, text, capture):
        """Return what the program of the same tree makes of a capture."""
        with tempfile.TemporaryDirectory() as folder:
            place = pathlib.Path(folder)
            (place / 'in.pcap').write_bytes(capture)
            subprocess.run([self.click, '-e', text], cwd=place, check=True,
                           timeout=60)
            return (place / 'out.pcap').read_bytes()

    def test_what_does_not_fit_is_refused(self):
        one = guest.Guest(self.dom0, 'full', 'pvh').create()
        state, error = one.install(
            'InfiniteSource -> ToDump(big.pcap); Idle -> Discard;')
        self.assertEqual(('Running', ''), (state, error))
        self.wait_for(lambda: 'the limit of all files is' in one.console())
        self.assertRegex(one.read_handler('files'), r'^\d{6} big\.pcap')
        state, error = one.install(_archive({'config': b'Idle;'})[:70], rid=1)
        self.assertEqual(('Error', 'test.click: archive: a member is longer '
                          'than the file'), (state, error))


def _passes(number):
    """Return whether a frame is of a kind that the firewall allows."""
    return number % 4 < 2


def _record(number):
    """Return a frame as a record of a capture: four kinds in turn."""
    protocol, port = ((_UDP, 53), (_TCP, 443), (_UDP, 54), (_TCP, 53))[
        number % 4]
    ports = struct.pack('>HH', 1024 + number, port)
    frame = bytes(12) + b'\x08\0' + _ip_header(protocol, 60) \
        + ports + bytes(range(36))
    return struct.pack('<IIII', 1_700_000_000, number, len(frame),
                       len(frame)) + frame


def _ip_header(protocol, length):
    words = [0x4500, length, 0, 0, 0x4000 | protocol, 0, 0x0a00, 1, 0x0a00, 2]
    total = sum(words)
    words[5] = ~((total & 0xffff) + (total >> 16)) & 0xffff
    return struct.pack('>10H', *words)


def _archive(files):
    """Return files as an ``ar`` archive."""
    members = (f'{name + "/":<16}{0:<12}{0:<6}{0:<6}{644:<8}{len(data):<10}`\n'
               .encode() + data + b'\n' * (len(data) % 2)
               for name, data in files.items())
    return b'!<arch>\n' + b''.join(members)
