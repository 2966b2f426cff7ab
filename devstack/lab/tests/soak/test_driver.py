# SPDX-License-Identifier: Apache-2.0
"""valed in a driver domain: guests at its ports, its end and theirs."""

import json
import re

from clickos_lab.xen import driver
from clickos_lab.xen import image
from clickos_lab.xen import toolstack
from clickos_lab.xen import variants
from tests.xen import guest
from tests.xen import test_net

_PINGS = 300
_FRAMES = 20000
_PINGER = """\
ping :: ICMPPingSource({ip}, {to_ip}, INTERVAL 0.01, LIMIT {count},
VERBOSE false, DATA \\<{data}>)
-> EtherEncap(0x0800, {mac}, {to_mac}) -> Queue(1000) -> ToDevice(0);
FromDevice(0) -> c :: Classifier(12/0800, -);
c[0] -> Strip(14) -> CheckIPHeader -> ping; c[1] -> Discard;
"""
_STREAM = """\
InfiniteSource(LIMIT {limit}, BURST 8)
-> UDPIPEncap({ip}, 1, {to_ip}, 2) -> EtherEncap(0x0800, {mac}, {to_mac})
-> Queue(64) -> ToDevice(0);
FromDevice(0) -> got :: Counter -> Discard;
"""


class _DriverDomain(test_net.NetTest):
    """dom0 has no valed: it writes nodes, and the driver domain follows."""

    @classmethod
    def add_files(cls, contents):
        super().add_files(contents)
        toolstack.build(cls.state, cls.places)
        driver.add(cls.state, cls.places, contents)

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.dom0.check(
            'set -e; lab-net bridge br0; lab-net endpoint br0 a 10.1.0.1/24')

    def setUp(self):
        super().setUp()
        self.backend = self._start()
        self.addCleanup(self._end)

    def _start(self):
        domid = driver.create(self.dom0)
        self.wait_for(lambda: 'ready' in self.dom0.run(
            driver.command('[ ! -S /run/valed.sock ] || echo ready')).out, 300)
        return domid

    def _end(self):
        print(self._inside('cat /run/valed.log /run/vale-ctl.log'))
        self.dom0.run(f'xl destroy {driver.NAME}', timeout_s=120)

    def _inside(self, line):
        """Run a line in the driver domain; return what it prints."""
        return self.dom0.run(driver.command(line), timeout_s=60).out

    def _vale(self, arguments):
        return self.dom0.run(f'{toolstack.FOLDER}/vale-ctl {arguments}',
                             timeout_s=60)

    def _backend(self, one, devid=0):
        return f'/local/domain/{self.backend}/backend/vale/' \
            f'{one.domid}/{devid}'

    def _await(self, one, state, devid=0):
        """Wait until the backend of a vif has a state."""
        self.dom0.check(
            f'lab-wait 30 {self._backend(one, devid)}/state {state}',
            timeout_s=60)

    def _ports(self):
        ports = json.loads(self._inside(driver.vale_ctl('-o json stats')))
        return {p['port']: p for p in ports}

    def _config(self, text, number, to, **more):
        return text.format(
            ip=test_net.ip(number), mac=test_net.mac(number),
            to_ip=test_net.ip(to), to_mac=test_net.mac(to), **more)

    def _ping(self, one, number, to):
        """Ping from guest to guest; every ping has to come back."""
        self.start(one, self._config(_PINGER, number, to, count=_PINGS,
                                     data='00' * 1400))
        want = f'{_PINGS} packets transmitted, {_PINGS} received'
        self.wait_for(lambda: want in one.read_handler('ping.summary'), 60)


class DriverDomainTest(_DriverDomain):
    """Guests by hand, on stock xl."""

    @classmethod
    def add_files(cls, contents):
        super().add_files(contents)
        image.build(cls.state, [test_net.HOSTILE])
        contents.add(image.folder(cls.state) / test_net.HOSTILE,
                     f'{image.FOLDER}/{test_net.HOSTILE}')

    def _attach(self, one, number, options=''):
        done = self._vale(
            f'attach vale0:{one.name} --kind xen --backend {self.backend} '
            f'--domid {one.domid} --segment 5 --mac {test_net.mac(number)} '
            f'--allow {test_net.ip(number)}/32 {options}')
        self.assertEqual((0, ''), (done.status, done.err))

    def _detach(self, one):
        done = self._vale(f'detach --backend {self.backend} '
                          f'--domid {one.domid}')
        self.assertEqual((0, ''), (done.status, done.err))

    def _guest(self, number):
        one = guest.Guest(self.dom0, f'vale{number}', 'pvh').create()
        self.addCleanup(self.dom0.run, f'xl destroy {one.name}')
        self._attach(one, number)
        self._await(one, 4)
        return one

    def _frontend(self, one, devid=0):
        return f'/local/domain/{one.domid}/device/vale/{devid}'

    def _exists(self, domid):
        return re.search(rf'^\S+ +{domid} ', self.dom0.check('xl list'),
                         re.MULTILINE)

    def _streams(self, ones):
        """Send frames both ways at once; each is counted somewhere."""
        before = self._ports()
        for (number, one), to in zip(ones.items(), reversed(ones)):
            self.start(one, self._config(_STREAM, number, to, limit=_FRAMES))
        self.wait_for(lambda: all(
            self._passed(before, one, 'rx_packets') == _FRAMES
            for one in ones.values()), 120)
        for one in ones.values():
            got = self._passed(before, one, 'tx_packets')
            lost = self._passed(before, one, 'dropped_full')
            self.assertEqual(_FRAMES, got + lost)
            self.assertEqual(
                0, self._passed(before, one, 'dropped_malformed'))

    def _passed(self, before, one, name):
        return self._ports()[one.name]['counters'][name] \
            - before[one.name]['counters'][name]

    def test_guests_outlive_their_driver_domain(self):
        ones = {number: self._guest(number) for number in (1, 2)}
        self._exchange(ones)
        first = self.backend
        self.dom0.check(f'xl destroy {driver.NAME}', timeout_s=120)
        self.wait_for(lambda: not self._exists(first))
        for one in ones.values():
            self.dom0.check(
                f'lab-wait 30 {self._frontend(one)}/state 6', timeout_s=60)
        self.backend = self._start()
        self.assertNotEqual(first, self.backend)
        for number, one in ones.items():
            self._attach(one, number)
            self._await(one, 4)
        self._exchange(ones)
        for one in ones.values():
            self._detach(one)
        self.wait_for(lambda: not self._ports())

    def _exchange(self, ones):
        self.start(ones[2], test_net.responder(2))
        self._ping(ones[1], 1, 2)
        self.start(ones[1], test_net.responder(1))
        self._ping(ones[2], 2, 1)
        self._streams(ones)

    def test_a_guest_that_ends_leaves_no_mapped_page(self):
        sink = self._guest(2)
        self.start(sink, self._config(_STREAM, 2, 1, limit=0))
        for hides in (False, True):
            with self.subTest(hides=hides):
                source = self._guest(1)
                self.start(source, self._config(_STREAM, 1, 2, limit=-1))
                before = self.handler(sink, 'got.count')
                self.wait_for(
                    lambda: self.handler(sink, 'got.count') > before + 1000)
                if hides:
                    self.dom0.check(self._hide(source))
                self.dom0.check('xl destroy vale1', timeout_s=120)
                # A domain whose pages somebody maps stays in Xen's list.
                self.wait_for(lambda: not self._exists(source.domid), 10)
                self._detach(source)
                self.wait_for(lambda: list(self._ports()) == ['vale2'], 10)

    def _hide(self, one):
        """Return what a guest does that keeps its nodes from the switch."""
        return ' && '.join(
            f'xenstore-chmod {self._frontend(one)}{key} n{one.domid}'
            for key in ('', '/state'))

    def test_what_a_driver_domain_refuses(self):
        one = self._guest(1)
        self.start(one, test_net.responder(1))
        done = self._vale(
            f'attach vale0:bad --kind xen --backend {self.backend} '
            f'--domid {one.domid} --devid 9 --segment 5 '
            f'--mac {test_net.mac(9)} --slots 100')
        self.assertEqual(1, done.status)
        self.assertIn('the driver domain: port-add: slots', done.err)
        self.assertNotEqual(0, self.dom0.run(
            f'xenstore-exists {self._backend(one, 9)}').status)
        done = self._vale(
            'attach vale0:bad --kind xen --backend 9999 --domid 7 '
            f'--segment 5 --mac {test_net.mac(9)}')
        self.assertIn('no domain 9999', done.err)
        self._refused_keys(one)
        self._garbage()
        self.assertEqual('4', self.dom0.check(
            f'xenstore-read {self._backend(one)}/state').strip())
        pinger = self._guest(2)
        self._ping(pinger, 2, 1)

    #: Channel 1 is the toolstack's. valed does not read the paths that the
    #: guest writes.
    _WRONG = (({'ring-ref': 'x', 'event-channel': 2},
               'ring-ref: is not a number'),
              ({'ring-ref': 9999, 'event-channel': 2}, 'ring-ref: '),
              ({'ring-ref': 8, 'event-channel': 1, 'ring-version': 7},
               'ring-version: 7 is above'),
              ({'multi-queue-num-queues': 5},
               'multi-queue-num-queues: 5 is not from 1 to 4'),
              ({'backend': '/local/domain/0', 'backend-id': 0}, 'ring-ref'))

    def _refused_keys(self, good):
        """Write keys as a guest could that does not run."""
        self.dom0.put_text(image.config('pvh', 'paused'), '/root/paused.cfg')
        self.dom0.check('xl create -q -p -e /root/paused.cfg', timeout_s=120)
        self.addCleanup(self.dom0.run, 'xl destroy paused')
        one = guest.Guest(self.dom0, 'paused', 'pvh')
        one.domid = int(self.dom0.check('xl domid paused'))
        for devid, (keys, error) in enumerate(self._WRONG):
            with self.subTest(keys):
                number = 20 + devid
                done = self._vale(
                    f'attach vale0:wrong{devid} --kind xen '
                    f'--backend {self.backend} --domid {one.domid} '
                    f'--devid {devid} --segment 5 '
                    f'--mac {test_net.mac(number)}')
                self.assertEqual((0, ''), (done.status, done.err))
                for key, value in {**keys, 'state': 4}.items():
                    self.dom0.check('xenstore-write '
                                    f'{self._frontend(one, devid)}/{key} '
                                    f'{value}')
                self._await(one, 6, devid)
                log = self._inside('cat /run/valed.log')
                self.assertRegex(log, f'wrong{devid}: .*{error}')
        self._await(good, 4)

    def _garbage(self):
        """Let a guest lie in its rings."""
        one = guest.Guest(self.dom0, 'liar', 'pvh')
        one.run(test_net.HOSTILE)
        self.addCleanup(self.dom0.run, 'xl destroy liar')
        one.domid = int(self.dom0.check('xl domid liar'))
        self._attach(one, 3, '--slots 64')
        self._await(one, 4)
        self.wait_for(lambda: self._ports()['liar']['counters'][
            'dropped_malformed'] > 1000)
        self.dom0.check('xl destroy liar')
        self.wait_for(lambda: not self._exists(one.domid), 10)
        self._detach(one)


class PatchedTest(_DriverDomain):
    """Guests of a patched xl, which names the domain of the switch."""

    variant = variants.PATCHED

    def _xl(self, arguments):
        return self.dom0.run(f'xl {arguments}', timeout_s=300)

    def _create(self, number):
        one = guest.Guest(
            self.dom0, f'vale{number}', 'pvh',
            f'vif = ["type=vale,backend={driver.NAME},segment=5,'
            f'mac={test_net.mac(number)},allow={test_net.ip(number)}/32"]')
        self.addCleanup(self._xl, f'destroy {one.name}')
        return one.create()

    def test_create_and_destroy(self):
        first, second = self._create(1), self._create(2)
        self.start(second, test_net.responder(2))
        self._ping(first, 1, 2)
        self.assertEqual(0, self._xl('destroy vale1').status)
        self.assertEqual([f'dom{second.domid}-0'], list(self._ports()))
        left = self.dom0.run(f'xenstore-ls -f | grep "{self._backend(first)}"')
        self.assertEqual('', left.out)

    def test_a_refused_vif_makes_no_guest(self):
        self.dom0.put_text(
            image.config('pvh', 'bad') + 'vif = ["type=vale,segment=5,'
            f'slots=100,backend={driver.NAME}"]\n', '/root/bad.cfg')
        self.assertNotEqual(0, self._xl('create -q -e /root/bad.cfg').status)
        self.assertNotEqual(0, self._xl('domid bad').status)
        self.assertIn('slots', self._inside('cat /run/vale-ctl.log'))
        self.assertEqual({}, self._ports())
