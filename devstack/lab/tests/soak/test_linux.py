# SPDX-License-Identifier: Apache-2.0
"""A Linux guest on stock netback and on the ring of valed at once."""

import json

from clickos_lab.xen import linux
from clickos_lab.xen import netback
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
"""
_VALE = f'VALE_CTL=({toolstack.FOLDER}/vale-ctl ' \
    f'--socket {toolstack.FOLDER}/valed.sock)\n'
#: Fewer than pings, so that the rings wrap.
_SLOTS = 64
_PINGS = 500


class _LinuxGuest(test_net.ValePorts):
    """A host with the guest, whose device 0 is stock netback's."""

    #: of its configuration
    vifs = None
    port = 'linux'

    @classmethod
    def add_files(cls, contents):
        # Only these: dom0 has little space beside the kernel.
        toolstack.build(cls.state, cls.places)
        for program in ('valed', 'vale-ctl'):
            contents.add(toolstack.built(cls.state, program),
                         f'{toolstack.FOLDER}/{program}', 0o755)
        linux.build(cls.state, cls.places)
        linux.add(cls.places, contents, _STOCK_IP, test_net.ip(1))
        contents.add_text(f'{_CONFIG}vif = [{cls.vifs}]\n', '/root/linux.cfg')

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.dom0.check(
            'set -e; lab-net bridge br0; lab-net endpoint br0 a 10.1.0.1/24')

    def _create(self):
        """Create the guest paused; return its number."""
        self.dom0.check('xl create -q -p -e /root/linux.cfg', timeout_s=300)
        self.addCleanup(self.dom0.run, 'xl destroy linux')
        return int(self.dom0.check('xl domid linux'))

    def _unpause(self):
        """Start the guest; both of its devices have to answer."""
        self.dom0.check('xl unpause linux')
        self.wait_for(lambda: self._answers('a', _STOCK_IP), 300)
        self.wait_for(lambda: self._answers('c', test_net.ip(1)), 300)

    def _answers(self, namespace, address):
        return self.dom0.run(f'ip netns exec {namespace} ping -c 1 -W 1 '
                             f'{address}').status == 0

    def _counters(self):
        ports = json.loads(self._vale('-o json stats'))
        found, = (p for p in ports if p['port'] == self.port)
        return found['counters']

    def _frames_both_ways(self):
        """Send pings through both devices."""
        before = self._counters()
        self.ping('c', test_net.ip(1), _PINGS, 0.002, '-s 1400')
        after = self._counters()
        for way in ('rx_packets', 'tx_packets'):
            self.assertGreaterEqual(after[way] - before[way], _PINGS)
        self.assertEqual(0, self._counters()['dropped_malformed'])
        self.ping('a', _STOCK_IP, _PINGS, 0.002, '-s 1400')


class LinuxTest(_LinuxGuest):
    """Its other device is a vale."""

    vifs = '"bridge=br0"'

    def test_frames_both_ways_on_both_devices(self):
        domid = self._create()
        self._attach('linux', f'--kind xen --domid {domid} --devid 0 '
                     f'--mac {test_net.mac(1)} --allow {test_net.ip(1)}/32 '
                     f'--slots {_SLOTS}')
        self.addCleanup(self._vale, 'detach vale0:linux')
        self._unpause()
        self._frames_both_ways()


class _NetbackGuest(_LinuxGuest):
    """A guest on a patched netback."""

    @classmethod
    def add_files(cls, contents):
        super().add_files(contents)
        netback.build(cls.state, cls.places)
        netback.add(cls.places, contents)
        contents.add_text(_VALE, '/etc/default/vale')

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.dom0.check(f'rmmod xen_netback && insmod {netback.MODULE}')

    def setUp(self):
        super().setUp()
        self.dom0.check('dmesg -c >/dev/null')
        self.domid = self._create()

    def _path(self, devid):
        return f'/local/domain/0/backend/vif/{self.domid}/{devid}'

    def _await(self, devid, state):
        """Wait until the backend of a vif has a state."""
        self.dom0.check(f'lab-wait 60 {self._path(devid)}/state {state}',
                        timeout_s=90)

    def _guest_writes(self, devid, **keys):
        """Write keys as the guest could."""
        path = f'/local/domain/{self.domid}/device/vif/{devid}'
        for key, value in keys.items():
            name = key.replace('_', '-')
            self.dom0.check(f'xenstore-write {path}/{name} {value}')

    def _await_error(self, devid, text):
        """Wait for netback's error in the store; it is in the log once."""
        path = f'/local/domain/0/error/backend/vif/{self.domid}/{devid}/error'
        self.dom0.check(f"lab-wait 60 {path} '.*{text}.*'", timeout_s=90)
        lines = self.dom0.check('dmesg').splitlines()
        found = [x for x in lines if f'vif-{self.domid}-{devid}' in x]
        self.assertEqual(1, len(found), lines)
        self.assertIn(text, found[0])


class HostileFrontendTest(_NetbackGuest):
    """The guest does not run: the test writes its keys."""

    vifs = ', '.join(
        f'"script=vif-vale,bridge=vale0.5,mac={test_net.mac(n)}"'
        for n in range(1, 6))

    #: Channel 1 is the toolstack's.
    _WRONG = (({}, 'reading ring-ref'),
              ({'ring_ref': 'x', 'event_channel': 2}, 'reading ring-ref'),
              ({'ring_ref': 8, 'event_channel': 1}, 'not unbound'),
              ({'ring_ref': 8, 'event_channel': 99999}, 'not unbound'))

    def test_keys_that_netback_refuses(self):
        for devid, (keys, error) in enumerate(self._WRONG):
            with self.subTest(keys):
                self._guest_writes(devid, **keys, state=4)
                self._await_error(devid, error)
                self._await(devid, 5)
                # No second chance, so no second line in the log.
                self._guest_writes(devid, state=6)
                self._await(devid, 6)
                self._guest_writes(devid, state=1)
                self._await(devid, 2)
                self._guest_writes(devid, state=4)
                self._guest_writes(devid, state=5)
                self._await(devid, 5)
                self._await_error(devid, error)
        # The last vif is as before.
        self._await(len(self._WRONG), 2)
