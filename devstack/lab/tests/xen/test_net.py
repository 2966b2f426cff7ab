# SPDX-License-Identifier: Apache-2.0
"""Network devices of guests: netfront on stock netback, ports of valed."""

import json
import math
import re

from clickos_client import pings

from clickos_lab.xen import image
from clickos_lab.xen import toolstack
from tests.xen import base
from tests.xen import guest

#: The image of a guest that lies in its rings.
HOSTILE = 'hostile'
_MAC = '00:16:3e:00:00:05'
#: Answers ARP and pings for one address.
_RESPONDER = """\
in :: FromDevice(0) -> c :: Classifier(12/0806 20/0001, 12/0800, -);
c[0] -> ARPResponder({ip} {mac}) -> q :: Queue(1000) -> ToDevice(0);
c[1] -> CheckIPHeader(14) -> ip :: IPClassifier(icmp, udp, -);
ip[0] -> ICMPPingResponder -> EtherMirror -> q;
ip[1] -> CheckIPHeader(14) -> CheckUDPHeader -> udp :: Counter -> Discard;
ip[2] -> Discard; c[2] -> Discard;
"""
_SOURCE = """\
InfiniteSource(LIMIT {limit}, BURST 8)
-> UDPIPEncap({ip}, 1, {to_ip}, 2) -> EtherEncap(0x0800, {mac}, {to_mac})
-> Queue(64) -> ToDevice(0);
FromDevice(0) -> Discard;
"""
#: Keeps all IP packets until it may count those that are whole.
_COLLECTOR = """\
FromDevice(0) -> c :: Classifier(12/0806 20/0001, 12/0800, -);
c[0] -> ARPResponder({ip} {mac}) -> Queue -> ToDevice(0);
c[1] -> came :: Counter -> q :: Queue(1000) -> u :: Unqueue(ACTIVE false)
-> Strip(14) -> CheckIPHeader -> IPClassifier(udp) -> CheckUDPHeader
-> whole :: Counter -> Discard; c[2] -> Discard;
"""
#: Sends datagrams of random bytes as long as a domain has its number.
_RANDOM = """\
while [ "$(xl domid {name} 2>&1)" = {domid} ]; do
  for _ in 1 2 3 4 5; do head -c 1000 /dev/urandom >/dev/udp/{ip}/9; done
done"""
_SINK = 'FromDevice(0) -> got :: Counter -> Discard;'
#: Pings of a full frame.
_FULL = '-s 1472 -M do'
_ALL_OFF = 'extra = "netfront.poll=off netfront.keep_grants=off ' \
    'netfront.fast_refill=off"'
#: Waits until the bridge forwards to a vif (BR_STATE_FORWARDING,
#: linux/if_bridge.h): it hears of the carrier up to a second later.
_AWAIT_BRIDGE = """
for _ in $(seq 300); do
    [ "$(cat /sys/class/net/{vif}/brport/state 2>&1)" != 3 ] || exit 0
    sleep 0.1
done
exit 1
"""


class NetTest(base.XenTest):
    """Tests of both kinds of devices."""

    def ping(self, namespace, address, count=10, interval_s=0.2, options=''):
        """Ping an address; every packet has to come back unchanged."""
        out = self.dom0.check(
            f'ip netns exec {namespace} ' + ' '.join(pings.command(
                address, count, interval_s, *options.split())),
            timeout_s=math.ceil(count * interval_s) + 2 * pings.PATIENCE_S)
        self.assertEqual((), pings.judge(out, count).lost, out)
        self.assertNotIn('wrong data', out)

    def handler(self, of, name):
        """Return a number a handler gives."""
        return int(of.read_handler(name))

    def start(self, of, text):
        """Install a configuration, which has to start."""
        self.assertEqual(('Running', ''), of.install(text))


class NetfrontTest(NetTest):

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.dom0.check(
            'set -e; lab-net bridge br0; lab-net endpoint br0 a 10.1.0.1/24')

    def _guest(self, name, extra=''):
        one = guest.Guest(self.dom0, name, 'pvh',
                          f'vif = ["bridge=br0,mac={_MAC}"]\n{extra}')
        one.create()
        self.addCleanup(one.destroy)
        self.start(one, _RESPONDER.format(ip='10.1.0.9', mac=_MAC))
        self._await_bridge(one)
        return one

    def _await_bridge(self, of):
        """Wait until frames reach a guest's first vif."""
        self.dom0.check(_AWAIT_BRIDGE.format(vif=f'vif{of.domid}.0'),
                        timeout_s=60)

    def _udp(self, of):
        """Send datagrams that dom0 leaves without checksum; all arrive."""
        before = self.handler(of, 'udp.count')
        self.dom0.check(
            'ip netns exec a bash -c '
            '"for i in 1 2 3 4 5 6 7 8; do '
            'echo $i >/dev/udp/10.1.0.9/9; done"')
        self.wait_for(lambda: self.handler(of, 'udp.count') == before + 8)

    def test_frames_of_every_size_and_blank_checksums(self):
        one = self._guest('net')
        self.ping('a', '10.1.0.9', 5, options=_FULL)
        self.ping('a', '10.1.0.9', 500, 0.002)
        self._udp(one)
        counted = _counters(one)
        self._all_passed(counted)
        # All at the start, and kept.
        self.assertGreaterEqual(counted['grants_made'], 256)
        self.assertEqual(0, counted['grants_ended'])

    def test_without_the_improvements(self):
        one = self._guest('plain', _ALL_OFF)
        self.ping('a', '10.1.0.9', 500, 0.002)
        self._udp(one)
        counted = _counters(one)
        self._all_passed(counted)
        # One for each frame, but for those that wait to be ended.
        frames = counted['rx_packets'] + counted['tx_packets']
        self.assertGreater(counted['grants_ended'], frames - 256)

    def _all_passed(self, counted):
        """At least the pings and their answers; nothing was lost."""
        for way in ('rx', 'tx'):
            self.assertGreaterEqual(counted[f'{way}_packets'], 500)
            self.assertGreater(counted[f'{way}_bytes'],
                               42 * counted[f'{way}_packets'])
        for lost in ('rx_errors', 'rx_too_long', 'tx_errors',
                     'tx_bad_length', 'malformed', 'faults'):
            self.assertEqual(0, counted[lost], lost)
        self.assertGreater(counted['events_sent'], 0)
        self.assertGreater(counted['events_taken'], 0)

    def test_a_device_is_detached_and_attached_again(self):
        one = self._guest('again')
        self.ping('a', '10.1.0.9')
        self.dom0.check('set -e; xl network-detach again 0; '
                        f'xl network-attach again bridge=br0 mac={_MAC}',
                        timeout_s=120)
        self._await_bridge(one)
        self.ping('a', '10.1.0.9')


class ValePorts(NetTest, base.CosmosTest):
    """A host whose switch has the port of a client in dom0."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        toolstack.start(cls.host, 'valed')
        cls.dom0.check(
            'set -e; ip netns add c; ip netns exec c sh -c '
            '"echo 1 >/proc/sys/net/ipv6/conf/all/disable_ipv6"; '
            'ip link add vc address 02:00:00:00:00:c0 type veth '
            'peer name eth0 address 02:00:00:00:00:c1 netns c; '
            'ip link set vc up; ip -n c link set eth0 up; '
            'ip -n c address add 10.2.0.1/24 dev eth0')

    def setUp(self):
        super().setUp()
        self._attach('client', '--kind veth --ifname vc '
                     '--mac 02:00:00:00:00:c1 --allow 10.2.0.1/32')
        self.addCleanup(self._vale, 'detach vale0:client')

    def _vale(self, arguments):
        folder = toolstack.FOLDER
        return self.dom0.check(f'{folder}/vale-ctl --socket '
                               f'{folder}/valed.sock {arguments}')

    def _attach(self, port, options):
        self._vale(f'attach vale0:{port} --segment 5 {options}')


class ValeGuests(ValePorts):
    """Guests by hand at ports of the switch."""

    def _attach_guest(self, one, number, slots):
        self._attach(one.name, f'--kind xen --domid {one.domid} --devid 0 '
                     f'--mac {mac(number)} --allow {ip(number)}/32 '
                     f'--slots {slots}')

    def _guest(self, number, kind='pvh', slots=256, options=''):
        one = guest.Guest(self.dom0, f'vale{number}', kind, options).create()
        self._add_port(one, number, slots)
        return one

    def _add_port(self, one, number, slots):
        """Attach a guest; port and guest end with the test."""
        self.addCleanup(self._vale, f'detach vale0:{one.name}')
        self.addCleanup(self.dom0.run, f'xl destroy {one.name}')
        self._attach_guest(one, number, slots)

    def _await_port(self, one):
        """Wait until a guest's port is connected."""
        state = f'/local/domain/0/backend/vale/{one.domid}/0/state'
        self.dom0.check(f'lab-wait 30 {state} 4', timeout_s=60)

    def _responder(self, number, **more):
        one = self._guest(number, **more)
        self.start(one, responder(number))
        return one

    def _source(self, number, to, limit):
        one = self._guest(number)
        self.start(one, _SOURCE.format(
            limit=limit, ip=ip(number), mac=mac(number), to_ip=ip(to),
            to_mac=mac(to)))
        return one

    def _counters(self, one):
        ports = json.loads(self._vale('-o json stats'))
        found, = (p for p in ports if p['port'] == one.name)
        return found['counters']

    def _version(self, one):
        """Return the version of a guest's rings."""
        directory = f'/local/domain/{one.domid}/device/vale/0'
        return self.dom0.check(
            f'xenstore-read {directory}/ring-version').strip()

    def _exists(self, domid):
        domains = self.dom0.check('xl list')
        return re.search(rf'^\S+ +{domid} ', domains, re.MULTILINE)


class ValeTest(ValeGuests):

    def test_ping_pvh_and_pv_with_small_and_large_rings(self):
        made = {
            self._responder(1, slots=64): '2',
            self._responder(2, kind='pv'): '2',
            # Rings of version 2 would leave too little of its memory.
            self._responder(3, slots=1024): '1',
            self._responder(4, options='extra = "vale.in_place=off"'): '1'}
        for number, (one, version) in enumerate(made.items(), 1):
            self.assertEqual(version, self._version(one))
            self.ping('c', ip(number), 150, 0.002)
            self.ping('c', ip(number), 150, 0.002, options=_FULL)
            self.assertEqual(0, _counters(one)['malformed'])

    def test_every_frame_of_a_stream_is_accounted_for(self):
        sink = self._guest(2)
        self.start(sink, _SINK)
        source = self._source(1, to=2, limit=20000)
        self.wait_for(lambda: self._counters(source)['rx_packets'] == 20000,
                      timeout_s=60)
        into = self._counters(sink)
        self.assertEqual(20000, into['tx_packets'] + into['dropped_full'])
        self.assertEqual(into['tx_packets'], self.handler(sink, 'got.count'))
        self.assertEqual(into['tx_packets'], _counters(sink)['rx_packets'])
        self.assertEqual(0, into['dropped_malformed'])

    def test_a_guest_killed_in_mid_stream_leaves_nothing(self):
        sink = self._guest(2)
        self.start(sink, _SINK)
        for _ in range(3):
            source = self._source(1, to=2, limit=-1)
            before = self.handler(sink, 'got.count')
            self.wait_for(
                lambda: self.handler(sink, 'got.count') > before + 1000)
            self.dom0.check(f'xl destroy {source.name}')
            # A domain whose pages somebody maps stays in Xen's list.
            self.wait_for(lambda: not self._exists(source.domid), 10)
            self._vale(f'detach vale0:{source.name}')
        self.start(sink, responder(2))
        self.ping('c', ip(2))

    def test_guests_outlive_a_killed_switch(self):
        one = self._responder(1)
        self.ping('c', ip(1), options=_FULL)
        toolstack.kill(self.host, 'valed')
        toolstack.start(self.host, 'valed')
        self._attach('client', '--kind veth --ifname vc '
                     '--mac 02:00:00:00:00:c1 --allow 10.2.0.1/32')
        self._vale_port_again(one, 1)
        self.ping('c', ip(1), options=_FULL)
        self.assertEqual('2', self._version(one))

    def test_a_restored_guest_finds_its_new_port(self):
        one = self._responder(1)
        self.ping('c', ip(1), options=_FULL)
        self.dom0.check(f'xl save {one.name} /run/saved', timeout_s=300)
        self._vale(f'detach vale0:{one.name}')
        self.dom0.check('xl restore -e /run/saved', timeout_s=300)
        one.domid = int(self.dom0.check(f'xl domid {one.name}'))
        self._vale_port_again(one, 1)
        self.ping('c', ip(1), options=_FULL)
        self.assertEqual('2', self._version(one))

    def test_packets_in_queues_are_whole_after_a_live_migration(self):
        one = self._guest(1)
        self.start(one, _COLLECTOR.format(ip=ip(1), mac=mac(1)))
        self.dom0.put_text(_RANDOM.format(
            name=one.name, domid=one.domid, ip=ip(1)), '/root/random')
        self.dom0.check('ip netns exec c bash /root/random '
                        '>/dev/null 2>&1 </dev/null &')
        before = self.wait_for(lambda: self.handler(one, 'came.count'))
        self.dom0.check(f"xl migrate -s '' {one.name} "
                        "'xl migrate-receive -e'", timeout_s=300)
        self._vale(f'detach vale0:{one.name}')
        one.domid = int(self.dom0.check(f'xl domid {one.name}'))
        self._vale_port_again(one, 1)
        came = self.handler(one, 'came.count')
        self.assertGreater(came, before + 10)
        one.request('write u.active true')
        self.wait_for(lambda: self.handler(one, 'q.length') == 0)
        self.assertEqual(came, self.handler(one, 'whole.count'))

    def _vale_port_again(self, one, number):
        """Add the port as a toolstack does, whose nodes are still there."""
        self._attach_guest(one, number, 256)
        self._await_port(one)


@base.slow
class HostileRingsTest(ValeGuests):
    """Guests that lie in their rings, next to honest ones."""

    @classmethod
    def add_files(cls, contents):
        super().add_files(contents)
        image.build(cls.state, [HOSTILE])
        contents.add(image.folder(cls.state) / HOSTILE,
                     f'{image.FOLDER}/{HOSTILE}')

    def test_garbage_costs_others_no_frame(self):
        self._responder(1)
        liars = [self._liar(3, 'off', '1'), self._liar(4, 'on', '2')]
        for options in ('', _FULL):
            self.ping('c', ip(1), 1200, 0.05, options)
        for one in liars:
            self.assertGreater(self._counters(one)['dropped_malformed'], 1000)
            self.dom0.check(f'xl destroy {one.name}')
            self.wait_for(lambda: not self._exists(one.domid))
        self.ping('c', ip(1))

    def _liar(self, number, in_place, version):
        one = guest.Guest(self.dom0, f'vale{number}', 'pvh',
                          f'extra = "vale.in_place={in_place}"')
        one.run(HOSTILE)
        one.domid = int(self.dom0.check(f'xl domid {one.name}'))
        self._add_port(one, number, 64)
        self._await_port(one)
        self.assertEqual(version, self._version(one))
        return one


def _counters(of, vif=0):
    """Return the counters of a vif by name."""
    lines = (line.split() for line in of.read_handler('vifs').splitlines())
    return {name: int(value) for number, name, value in lines
            if number == str(vif)}


def responder(number):
    """Return a configuration that answers for a guest's address."""
    return _RESPONDER.format(ip=ip(number), mac=mac(number))


def ip(number):
    """Return the address of a guest of a number."""
    return f'10.2.0.{10 + number}'


def mac(number):
    """Return the Ethernet address of a guest of a number."""
    return f'02:00:00:00:00:{number:02x}'
