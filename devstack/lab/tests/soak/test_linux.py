# SPDX-License-Identifier: Apache-2.0
"""A Linux guest on stock netback and on the ring of valed at once."""

import json
import re

from clickos_lab.xen import linux
from clickos_lab.xen import netback
from clickos_lab.xen import toolstack
from tests.xen import test_net

STOCK_IP = '10.1.0.9'
#: So that dom0 has room for what a save writes.
_MEMORY_MIB = 128
#: Fewer than pings, so that the rings wrap.
_SLOTS = 64
PINGS = 500
#: Frames between two looks at counters.
_BETWEEN = 10
#: Sends bytes to the guest, whose answers have to be the same.
_STREAM = """
set -e
head -c {size} /dev/urandom >/run/sent
ip netns exec {namespace} nc {address} 7 </run/sent | cmp - /run/sent
"""
_BYTES = 4 << 20
#: Streams one after the other, each of which is a flow. The guest's nc may not
#: listen yet.
_FLOWS = """
set -e
head -c 20000 /dev/urandom >/run/sent
for _ in $(seq {count}); do
    until ip netns exec c nc {address} 7 </run/sent >/run/back
    do sleep 0.1; done
    cmp /run/back /run/sent
done
"""
#: A stream that is on its way when a test continues.
_BACKGROUND = """
rm -f /run/ended
cat >/run/stream <<'END'
{stream}
END
(bash /run/stream >/run/stream.log 2>&1; echo $? >/run/ended) \\
    >/dev/null 2>&1 </dev/null &
sleep 1
[ ! -e /run/ended ]
"""
_LONG = 6 << 20
_TRACING = '/sys/kernel/tracing'
_TRACE = f"""
set -e
mountpoint -q {_TRACING} || mount -t tracefs tracefs {_TRACING}
echo 1 >{_TRACING}/events/xen_netback/enable
"""


def _total(counters, way, what):
    """Return the sum of a counter over all queues."""
    name = re.compile(rf'{way}_queue_\d+_{what}')
    return sum(n for key, n in counters.items() if name.fullmatch(key))


class _LinuxGuest(test_net.ValePorts):
    """A host with the guest, whose device 0 is stock netback's."""

    #: of its configuration
    vifs = ()
    vcpus = 1
    port = 'linux'

    @classmethod
    def add_files(cls, contents):
        # Only these: dom0 has little space besides the kernel.
        toolstack.build(cls.state, cls.places)
        toolstack.add(cls.state, contents, toolstack.SWITCH)
        linux.build(cls.state, cls.places)
        linux.add(cls.places, contents, cls.netfront())
        contents.add_text(
            linux.config('linux', test_net.ip(1), STOCK_IP, cls.vifs,
                         _MEMORY_MIB, cls.vcpus), '/root/linux.cfg')

    @classmethod
    def netfront(cls):
        """Return a module that replaces the guest's netfront."""
        return None

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
        self._await_answers()

    def _await_answers(self):
        self.wait_for(lambda: self._answers('a', STOCK_IP), 300)
        self.wait_for(lambda: self._answers('c', test_net.ip(1)), 300)

    def _answers(self, namespace, address):
        return self.dom0.run(f'ip netns exec {namespace} ping -c 1 -W 1 '
                             f'{address}').status == 0

    def _counters(self):
        """Return the switch's counters of the guest's port."""
        ports = json.loads(self._vale('-o json stats'))
        found, = (p for p in ports if p['port'] == self.port)
        return found['counters']

    def _frames_both_ways(self):
        """Send pings and a stream through both devices."""
        before = self._counters()
        self.ping('c', test_net.ip(1), PINGS, 0.002, '-s 1400')
        after = self._counters()
        for way in ('rx_packets', 'tx_packets'):
            self.assertGreaterEqual(after[way] - before[way], PINGS)
        self._stream('c', test_net.ip(1))
        self.assertEqual(0, self._counters()['dropped_malformed'])
        self._work_left()
        self.ping('a', STOCK_IP, PINGS, 0.002, '-s 1400')
        self._stream('a', STOCK_IP)

    def _work_left(self):
        """Neither dom0's kernel nor the guest summed up or cut the streams."""
        counters = self._guest_counters()
        for way in ('rx', 'tx'):
            self.assertGreater(_total(counters, way, 'csum_partial'), 0)
            self.assertGreater(_total(counters, way, 'segmented'), 0)
            self.assertEqual(0, _total(counters, way, 'refused'))

    def _stream(self, namespace, address):
        self.dom0.check(_STREAM.format(
            namespace=namespace, address=address, size=_BYTES), timeout_s=120)

    def _start_stream(self):
        """Start a long stream to the device on valed's ring."""
        self._start_stream_to('c', test_net.ip(1))

    def _start_stream_to(self, namespace, address):
        stream = _STREAM.format(namespace=namespace, address=address,
                                size=_LONG)
        self.dom0.check(_BACKGROUND.format(stream=stream))

    def _await_stream(self):
        """The stream has to end, with the same bytes."""
        self.dom0.check('until [ -e /run/ended ]; do sleep 0.2; done; '
                        'cat /run/stream.log; exit $(cat /run/ended)',
                        timeout_s=300)

    def _save(self):
        """Save the guest in mid-traffic."""
        self._start_stream()
        self.dom0.check('xl save linux /run/saved', timeout_s=300)
        self.dom0.check('[ ! -e /run/ended ]')

    def _restore(self):
        """Restore the guest paused; return its new number."""
        self.dom0.check('xl restore -p -e /run/saved', timeout_s=300)
        self.dom0.check('rm /run/saved')
        return int(self.dom0.check('xl domid linux'))

    def _guest_counters(self):
        """Return what `ethtool -S` shows in the guest."""
        out = linux.run(self.dom0, 'a', STOCK_IP,
                        f'{linux.NET} counters eth0')
        return {name: int(value) for name, value in
                (line.split() for line in out.splitlines())}


class LinuxTest(_LinuxGuest):
    """Its other device is a vale."""

    vifs = ('bridge=br0',)

    def setUp(self):
        super().setUp()
        self._attach_guest(self._create())
        self.addCleanup(self._vale, 'detach vale0:linux')
        self._unpause()

    def _attach_guest(self, domid):
        self._attach('linux', f'--kind xen --domid {domid} --devid 0 '
                     f'--mac {test_net.mac(1)} --allow {test_net.ip(1)}/32 '
                     f'--slots {_SLOTS}')

    def test_frames_both_ways_on_both_devices(self):
        self._frames_both_ways()
        ours, theirs = self._guest_counters(), self._counters()
        for way, other in (('tx', 'rx'), ('rx', 'tx')):
            packets = _total(ours, way, 'packets')
            # Neighbor discovery may come between the two looks.
            self.assertAlmostEqual(theirs[f'{other}_packets'], packets,
                                   delta=_BETWEEN)
            self.assertGreater(_total(ours, way, 'bytes'), 42 * packets)
            self.assertLess(_total(ours, way, 'notified'), packets)
            self.assertEqual(0, _total(ours, way, 'refused'))
        # The switch asks for no event when the guest has taken frames.
        self.assertGreater(_total(ours, 'tx', 'notified'), 0)
        self.assertGreater(ours['interrupts'], 0)

    def test_a_stream_outlives_save_and_restore(self):
        self._save()
        self._vale('detach vale0:linux')
        self._attach_guest(self._restore())
        self.dom0.check('xl unpause linux')
        self._await_stream()
        self._await_answers()
        self._frames_both_ways()


class QueuesTest(LinuxTest):
    """The guest has two processors, so the vale has two queues."""

    vcpus = 2

    def _frames_both_ways(self):
        super()._frames_both_ways()
        self._all_carry_frames(self.vcpus)

    def _all_carry_frames(self, queues):
        """Send flows; each queue has to carry some of them, both ways."""
        before = self._guest_counters()
        self.dom0.check(_FLOWS.format(address=test_net.ip(1),
                                      count=10 * queues), timeout_s=240)
        after = self._guest_counters()
        for name in (f'{way}_queue_{queue}_packets'
                     for way in ('rx', 'tx') for queue in range(queues)):
            self.assertGreater(after[name], before[name], name)
        self.assertNotIn(f'tx_queue_{queues}_packets', after)

    def test_each_connection_has_the_queues_that_the_guest_wants(self):
        for wanted, queues in ((1, 1), (9, 4), (0, self.vcpus)):
            with self.subTest(wanted):
                linux.run(self.dom0, 'a', STOCK_IP, f'echo {wanted} '
                          '>/sys/module/vale_front/parameters/queues')
                self._connect_anew()
                self._all_carry_frames(queues)

    def _connect_anew(self):
        """Let the guest close the device, as if valed had gone."""
        before = self._refs()
        domid = self.dom0.check('xl domid linux').strip()
        self.dom0.check('xenstore-write '
                        f'/local/domain/0/backend/vale/{domid}/0/state 5')
        self.wait_for(lambda: self._refs() != before)
        self.wait_for(lambda: self._answers('c', test_net.ip(1)), 60)

    def _refs(self):
        """Return what the guest has written about its rings."""
        domid = self.dom0.check('xl domid linux').strip()
        return self.dom0.check(f'xenstore-ls /local/domain/{domid}/device/vale'
                               '/0 | grep -E "queue|ring-ref|channel"')


class _NetbackGuest(_LinuxGuest):
    """A guest on a patched netback."""

    @classmethod
    def add_files(cls, contents):
        super().add_files(contents)
        netback.build(cls.state, cls.places)
        netback.add(cls.places, contents)
        toolstack.add_script_settings(contents)

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.dom0.check(f'rmmod xen_netback && insmod {netback.MODULE}')

    def setUp(self):
        super().setUp()
        self.dom0.check('dmesg -c >/dev/null')
        self.domid = self._create()
        self.port = f'vif{self.domid}-1'

    def _path(self, devid):
        return f'/local/domain/0/backend/vif/{self.domid}/{devid}'

    def _await(self, devid, state):
        """Wait until the backend of a vif has a state."""
        self.dom0.check(f'lab-wait 60 {self._path(devid)}/state {state}',
                        timeout_s=90)

    def _attach_again(self, options=''):
        self._attach(self.port, f'--kind xen --netback --domid {self.domid} '
                     f'--devid 1 --mac {test_net.mac(1)} '
                     f'--allow {test_net.ip(1)}/32 {options}')

    def _guest_writes(self, devid, **keys):
        """Write keys as the guest could."""
        path = f'/local/domain/{self.domid}/device/vif/{devid}'
        for key, value in keys.items():
            name = key.replace('_', '-')
            self.dom0.check(f'xenstore-write {path}/{name} {value}')

    def _await_error(self, devid, text):
        """Wait for netback's error in the log, once, and in the store."""
        name = f'vif vif-{self.domid}-{devid}: '
        found = self.wait_for(lambda: [
            x for x in self.dom0.check('dmesg').splitlines() if name in x])
        self.assertEqual(1, len(found), found)
        self.assertIn(text, found[0])
        path = f'/local/domain/0/error/backend/vif/{self.domid}/{devid}'
        self.assertIn(text, self.dom0.check(f'xenstore-read {path}/error'))


class NetbackTest(_NetbackGuest):
    """Its other device is a vif whose packets netback leaves to valed."""

    vifs = ('bridge=br0', 'script=vif-vale,bridge=vale0.5,'
            f'mac={test_net.mac(1)},ip={test_net.ip(1)}/32')

    def _start(self):
        self._unpause()
        self._await(1, 4)

    def test_frames_both_ways_on_both_devices_and_their_trace(self):
        self._start()
        self.dom0.check(_TRACE)
        self._frames_both_ways()
        found = self.dom0.check(f'cut -c1-100 {_TRACING}/trace')
        steps = self.dom0.check(f'ls {_TRACING}/events/xen_netback').split()
        steps = [x for x in steps if x.startswith('xenvif_')]
        self.assertEqual(9, len(steps))
        for step in steps:
            self.assertIn(f' {step}: vif{self.domid}.0-q0 count=', found)
        self.assertNotIn(f'vif{self.domid}.1', found)

    def test_a_stream_outlives_save_and_restore(self):
        self._start()
        self._save()
        self._await_no_port()
        self.domid = self._restore()
        self.port = f'vif{self.domid}-1'
        self.dom0.check('xl unpause linux')
        self._await_stream()
        self._await_answers()
        self._frames_both_ways()

    def test_a_guest_destroyed_in_mid_traffic_leaves_nothing(self):
        self._start()
        self._start_stream()
        self.dom0.check('xl destroy linux', timeout_s=120)
        self._await_no_port()
        self._await_nothing_left()

    def _await_no_port(self):
        """The hotplug script takes the port away."""
        self.wait_for(lambda: self.port not in self._vale('-o json stats'))

    def test_a_guest_outlives_the_switch_and_leaves_nothing(self):
        self._start()
        toolstack.kill(self.host, 'valed')
        self._start_switch()
        self._attach_again()
        self.wait_for(lambda: self._answers('c', test_net.ip(1)), 60)
        toolstack.kill(self.host, 'valed')
        self.dom0.check('xl destroy linux', timeout_s=120)
        self._start_switch()
        self._await_nothing_left()

    def _await_nothing_left(self):
        # A domain whose pages somebody maps stays in Xen's list.
        self.wait_for(lambda: not self._exists())
        self.assertNotIn(f'vif/{self.domid}/',
                         self.dom0.check('xenstore-ls -f'))
        # Only a module that nothing uses can be removed.
        self.dom0.check(f'rmmod xen_netback && insmod {netback.MODULE}')

    def _start_switch(self):
        toolstack.start(self.host, 'valed')
        self._attach('client', '--kind veth --ifname vc '
                     '--mac 02:00:00:00:00:c1 --allow 10.2.0.1/32')

    def _exists(self):
        return re.search(rf'^\S+ +{self.domid} ',
                         self.dom0.check('xl list'), re.MULTILINE)

    def test_rings_that_valed_refuses_and_late_changes(self):
        self._start()
        for options, keys in (('--slots 64', {}), ('', {'ring_ref': 9999})):
            with self.subTest(options=options, keys=keys):
                self._detach()
                self.dom0.check('dmesg -c >/dev/null')
                self._guest_writes(1, **keys)
                self._attach_again(options)
                self._await_error(1, 'valed refused the rings')
                self.ping('a', STOCK_IP)
        self._detach()
        self._attach_again()
        self._await(1, 4)
        self._guest_writes(1, ring_ref=1, event_channel=1, state=4)
        self.ping('c', test_net.ip(1))
        self.dom0.check('dmesg -c >/dev/null')
        self._guest_writes(1, state=7)
        self._await_error(1, 'rings cannot be changed')
        self._await(1, '[256]')
        self.ping('a', STOCK_IP)

    def _detach(self):
        """Take the port away; the guest offers new rings and waits."""
        self._vale(f'detach vale0:{self.port}')
        self._await(1, 2)
        self._await_guest(4)

    def _await_guest(self, state):
        self.dom0.check(f'lab-wait 60 /local/domain/{self.domid}/device/vif/1/'
                        f'state {state}', timeout_s=90)


class HostileFrontendTest(_NetbackGuest):
    """The guest does not run: the test writes its keys."""

    vifs = tuple(f'script=vif-vale,bridge=vale0.5,mac={test_net.mac(n)}'
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
