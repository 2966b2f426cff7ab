# SPDX-License-Identifier: Apache-2.0
"""The host itself: dom0, commands and files, several side by side."""

import os
import pathlib
import tempfile
import time

from clickos_lab import errors
from clickos_lab.xen import host
from clickos_lab.xen import snapshot
from tests.xen import base


class HostTest(base.XenTest):

    @classmethod
    def setUpClass(cls):
        cls.began_s = time.time()
        super().setUpClass()

    def test_dom0_runs_on_xen(self):
        info = self.dom0.check('xl info')
        self.assertIn('xen_major              : 4', info)
        self.assertIn('virt_caps              : pv hvm', info)
        self.assertEqual('Domain-0', self.dom0.check('xl domname 0').strip())

    def test_clock_is_right_after_restore(self):
        inside_s = int(self.dom0.check('date +%s'))
        self.assertLess(self.began_s - 1, inside_s)
        self.assertLess(inside_s, time.time() + 1)

    def test_status_and_both_outputs_come_back(self):
        result = self.dom0.run('echo out; echo err >&2; exit 7')
        self.assertEqual((7, 'out\n', 'err\n'),
                         (result.status, result.out, result.err))

    def test_time_limit_ends_the_script(self):
        with self.assertRaisesRegex(errors.LabError, 'not done after 1 s'):
            self.dom0.check('sleep 10; touch /tmp/late', timeout_s=1)
        self.assertEqual(
            1, self.dom0.run('sleep 3; test -e /tmp/late').status)

    def test_files_go_in_and_come_back(self):
        content = os.urandom(300_000)
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, 'file')
            path.write_bytes(content)
            self.dom0.put(path, '/tmp/with blank/file', 0o750)
        self.assertEqual(content, self.dom0.get('/tmp/with blank/file'))
        self.assertEqual('750', self.dom0.check(
            'stat -c %a "/tmp/with blank/file"').strip())

    def test_a_missing_file_is_an_error(self):
        with self.assertRaisesRegex(errors.LabError, 'No such file'):
            self.dom0.get('/no/such')

    def test_logs_are_collected(self):
        with tempfile.TemporaryDirectory() as folder:
            self.host.collect(pathlib.Path(folder))
            found = {p.name for p in pathlib.Path(folder).iterdir()}
        self.assertLessEqual({'console.log', 'xl-dmesg.log', 'xen'}, found)

    def test_nobody_else_has_the_port_or_the_keys(self):
        listening = pathlib.Path('/proc/net/tcp').read_text()
        config = self.host.places.ssh_config.read_text()
        port = int(config.partition('Port ')[2].split()[0])
        self.assertIn(f'0100007F:{port:04X}', listening)
        self.assertNotIn(f'00000000:{port:04X}', listening)
        self.assertEqual(0o700, self.places.root.stat().st_mode & 0o777)

    def test_dom0_reaches_nothing_outside(self):
        status = self.dom0.run('nc -w 2 10.0.2.2 22 </dev/null').status
        self.assertNotEqual(0, status)

    def test_a_second_host_does_not_disturb(self):
        second = host.Host(self.places, f'{self.host.name}b')
        self.addCleanup(second.remove)
        second.restore(snapshot.ensure(self.places))
        self.dom0.check('touch /tmp/first')
        self.assertEqual(1, second.dom0.run('test -e /tmp/first').status)
        second.stop()
        self.assertFalse(second.running())
        self.dom0.check('test -e /tmp/first')


class NetworkTest(base.XenTest):
    """Bridges and namespaces in dom0, which tests of guests use."""

    def _ping(self, kind, bridge, net):
        self.dom0.check(
            f'lab-net {kind} {bridge}; '
            f'lab-net endpoint {bridge} {bridge}a {net}.1/24; '
            f'lab-net endpoint {bridge} {bridge}b {net}.2/24')
        self.dom0.check(f'ip netns exec {bridge}a ping -c 3 -i 0.2 -w 50 '
                        f'{net}.2')

    def test_linux_bridge(self):
        self._ping('bridge', 'lin0', '10.1.0')

    def test_open_vswitch(self):
        self._ping('ovs', 'ovs0', '10.2.0')

    def test_throughput_tool(self):
        self.dom0.check('iperf3 -s -D -1; until netstat -ltn | '
                        'grep -q ":5201 "; do sleep 0.1; done')
        text = self.dom0.check('iperf3 -c 127.0.0.1 -t 1 -J')
        self.assertIn('bits_per_second', text)
