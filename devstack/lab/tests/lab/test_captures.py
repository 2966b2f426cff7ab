# SPDX-License-Identifier: Apache-2.0
"""Files of frames, which the switches of the running lab write."""

import shutil
import struct
import time
import unittest
import uuid

from clickos_lab.config import neutron
from clickos_lab import errors
from clickos_lab import paths
from clickos_lab import shell
from clickos_lab.xen import compute
from clickos_lab.xen import toolstack

#: A segment without a network.
_SEGMENT = 4009
_HEADER = struct.pack('<IHHiIII', 0xa1b2c3d4, 2, 4, 0, 0, 2048, 1)
_FRAME = bytes.fromhex('020000000002' '020000000001' '88b5') + bytes(46)
_PATIENCE_S = 30


def _capture(frame):
    """Return a file with one frame."""
    return _HEADER + struct.pack('<IIII', 1, 0, len(frame), len(frame)) + frame


class CapturesTest(unittest.TestCase):

    def setUp(self):
        self._state = paths.State()
        self._folder = self._state.data / 'valed/captures'
        self._name = f'lab-{uuid.uuid4().hex[:6]}'

    def vale_ctl(self, *words):
        """Run vale-ctl at the switch of the process host."""
        return shell.output([
            self._state.binary('vale-ctl'),
            f'--socket={self._state.run}/valed/valed.sock', *words])

    def make_file(self, name):
        """Make a file that the switch can play."""
        path = self._folder / f'{name}.pcap'
        path.write_bytes(_capture(_FRAME))
        owner = self._folder.stat()
        shutil.chown(path, owner.st_uid, owner.st_gid)
        self.addCleanup(path.unlink, missing_ok=True)

    def wait(self, path, size):
        """Wait until a file is as large; return its content."""
        deadline_s = time.monotonic() + _PATIENCE_S
        while path.stat().st_size < size and time.monotonic() < deadline_s:
            time.sleep(0.05)
        return path.read_bytes()

    def test_a_mirror_writes_frames_into_a_file(self):
        port, mirror = (f'{neutron.SWITCH}:{self._name}{end}'
                        for end in ('', '-m'))
        self.make_file(f'{self._name}-in')
        self.vale_ctl('attach', port, '--kind=pcap',
                      f'--segment={_SEGMENT}', f'--read={self._name}-in',
                      '--rate=50', '--repeat')
        self.addCleanup(self.vale_ctl, 'detach', port)
        words = ('mirror', 'set', mirror, f'--segment={_SEGMENT}',
                 f'--to-file={self._name}')
        path = self._folder / f'{self._name}.pcap'
        self.addCleanup(path.unlink, missing_ok=True)
        self.vale_ctl(*words)
        self.addCleanup(self.vale_ctl, 'mirror', 'remove', mirror)
        found = self.wait(path, len(_capture(_FRAME)))
        self.assertIn(_FRAME, found[len(_HEADER):])
        self.assertEqual(0o600, path.stat().st_mode & 0o777)
        with self.assertRaisesRegex(errors.LabError, 'exists'):
            self.vale_ctl(*words)

    def test_a_xen_host_has_room_for_captures(self):
        xen = compute.XenCompute(self._state)
        if not xen.running():
            self.skipTest('the lab has no Xen host')
        path = f'{toolstack.FOLDER}/captures/{self._name}.pcap'
        mirror = port = f'{neutron.SWITCH}:{self._name}'
        # A switch begins with its first port.
        xen.run('vale-ctl', 'attach', port, '--kind=pipe',
                f'--pipe={self._name}', f'--segment={_SEGMENT}')
        self.addCleanup(xen.run, 'vale-ctl', 'detach', port)
        self.addCleanup(xen.dom0.check, f'rm -f {path}')
        xen.run('vale-ctl', 'mirror', 'set', mirror, f'--segment={_SEGMENT}',
                f'--to-file={self._name}')
        self.addCleanup(xen.run, 'vale-ctl', 'mirror', 'remove', mirror)
        self.assertEqual(str(len(_HEADER)), xen.dom0.check(
            f'stat -c %s {path}').strip())
