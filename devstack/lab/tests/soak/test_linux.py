# SPDX-License-Identifier: Apache-2.0
"""A Linux guest on stock netback and on the ring of valed at once."""

import json

from clickos_lab.xen import linux
from clickos_lab.xen import toolstack
from tests.xen import test_net

_STOCK_IP = '10.1.0.9'
_CONFIG = f"""\
name = "linux"
type = "pvh"
kernel = "{linux.KERNEL}"
ramdisk = "{linux.INITRD}"
cmdline = "console=hvc0 rdinit=/init mitigations=off cryptomgr.notests"
memory = 256
vcpus = 1
on_reboot = "destroy"
vif = ["bridge=br0"]
"""
#: Fewer than pings, so that the rings wrap.
_SLOTS = 64
_PINGS = 500


class LinuxTest(test_net.ValePorts):

    @classmethod
    def add_files(cls, contents):
        # Only these: dom0 has little space beside the kernel.
        toolstack.build(cls.state, cls.places)
        for program in ('valed', 'vale-ctl'):
            contents.add(toolstack.built(cls.state, program),
                         f'{toolstack.FOLDER}/{program}', 0o755)
        linux.build(cls.state, cls.places)
        linux.add(cls.places, contents, _STOCK_IP, test_net.ip(1))

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.dom0.check(
            'set -e; lab-net bridge br0; lab-net endpoint br0 a 10.1.0.1/24')
        cls.dom0.put_text(_CONFIG, '/root/linux.cfg')

    def _start(self):
        """Create the guest; both of its devices have to answer."""
        self.dom0.check('xl create -q -p -e /root/linux.cfg', timeout_s=300)
        self.addCleanup(self._end)
        domid = int(self.dom0.check('xl domid linux'))
        self._attach('linux', f'--kind xen --domid {domid} --devid 0 '
                     f'--mac {test_net.mac(1)} --allow {test_net.ip(1)}/32 '
                     f'--slots {_SLOTS}')
        self.dom0.check('xl unpause linux')
        self.wait_for(lambda: self._answers('a', _STOCK_IP), 300)
        self.wait_for(lambda: self._answers('c', test_net.ip(1)), 300)

    def _end(self):
        self.dom0.run('xl destroy linux')
        self._vale('detach vale0:linux')

    def _answers(self, namespace, address):
        return self.dom0.run(f'ip netns exec {namespace} ping -c 1 -W 1 '
                             f'{address}').status == 0

    def _counters(self):
        ports = json.loads(self._vale('-o json stats'))
        found, = (p for p in ports if p['port'] == 'linux')
        return found['counters']

    def test_frames_both_ways_on_both_devices(self):
        self._start()
        before = self._counters()
        self.ping('c', test_net.ip(1), f'-c {_PINGS} -i 0.002 -s 1400')
        after = self._counters()
        for way in ('rx_packets', 'tx_packets'):
            self.assertGreaterEqual(after[way] - before[way], _PINGS)
        self.assertEqual(0, after['dropped_malformed'])
        self.ping('a', _STOCK_IP, f'-c {_PINGS} -i 0.002 -s 1400')
