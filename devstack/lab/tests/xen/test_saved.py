# SPDX-License-Identifier: Apache-2.0
"""Saves that complete and saves that do not: time and network go on."""

import json
import re
import time

from clickos_lab.xen import toolstack
from tests.xen import base
from tests.xen import guest

_MAC = '00:16:3e:01:00:0{}'
#: Answers ARP requests and pings of one device.
_ANSWERER = """
FromDevice({device}) -> kinds{device} :: Classifier(12/0806 20/0001, 12/0800);
to{device} :: Queue -> ToDevice({device});
kinds{device}[0] -> ARPResponder({address} {mac}) -> to{device};
kinds{device}[1] -> Strip(14) -> CheckIPHeader -> ICMPPingResponder
  -> EtherEncap(0x0800, {mac}, ff:ff:ff:ff:ff:ff) -> to{device};
"""
_RATE = 50
#: What depends on time: a rate, a timer, the clock.
_TIMED = f"""
RatedSource(RATE {_RATE}) -> rated :: Counter -> Discard;
TimedSource(0.02) -> timed :: Counter -> Discard;
clock :: Script(TYPE PASSIVE, return "$(now) $(rated.count) $(timed.count)");
"""
#: How long rates and sleep are measured.
_WATCHED_S = 3
#: A folder that takes less than a guest's memory.
_FULL = '/run/full'
#: Commands that stop a guest's time, or begin to.
EVENTS = {
    'start': 'true',
    'pause': 'xl pause timed; sleep 3; xl unpause timed',
    'checkpoint': 'xl save -c timed /run/timed',
    'full disk': f'! xl save timed {_FULL}/timed',
    'restore': 'xl save timed /run/timed; sleep 2; xl restore -e /run/timed',
    'migration': "xl migrate -s '' timed 'xl migrate-receive -e'"}
#: Moments of a save at which cosmosd is killed, in seconds.
_KILLS_S = (0.1, 0.3)


def _answers(device, network):
    return _ANSWERER.format(device=device, mac=_MAC.format(device),
                            address=f'10.{network}.0.9')


class TimeTest(base.XenTest):
    """xl suspends, moves and pauses a guest with a stock vif."""

    #: of :data:`EVENTS`; ``make soak PARTS=time`` takes all
    events = ('pause', 'restore')

    def setUp(self):
        super().setUp()
        self.dom0.check('lab-net bridge br0; '
                        'lab-net endpoint br0 near 10.1.0.1/24; '
                        f'mkdir -p {_FULL}; '
                        f'mount -t tmpfs -o size=1m full {_FULL}')
        self.one = guest.Guest(self.dom0, 'timed', 'pvh',
                               f'vif = ["bridge=br0,mac={_MAC.format(0)}"]')
        self.one.create(watched=False)
        self.addCleanup(self.one.destroy)
        self.assertEqual(('Running', ''),
                         self.one.install(_answers(0, 1) + _TIMED))

    @base.slow
    def test_all_is_right_after(self):
        for what in self.events:
            with self.subTest(after=what):
                self.dom0.check(EVENTS[what], timeout_s=120)
                self._assert_right()

    def _assert_right(self):
        domid = int(self.dom0.check('xl domid timed'))
        if domid != self.one.domid:
            self.one.domid = domid
            self.one.wait('0/state', 'Running 1')
        before_s = self._host_s()
        now_s, *_ = self._look()
        after_s = self._host_s()
        self.assertLess(before_s - 0.01, now_s)
        self.assertLess(now_s, after_s + 0.01)
        first = self._look()
        time.sleep(_WATCHED_S)
        passed_s, rated, timed, cpu_s = (
            b - a for a, b in zip(first, self._look()))
        for rate in (rated / passed_s, timed / passed_s):
            self.assertAlmostEqual(_RATE, rate, delta=_RATE / 2)
        self.assertLess(cpu_s, passed_s * 0.7)
        self.dom0.check('ip netns exec near ping -c 3 -i 0.2 -w 50 10.1.0.9')

    def _host_s(self):
        return float(self.dom0.check("bash -c 'echo $EPOCHREALTIME'"))

    def _look(self):
        """Return the guest's time, its counts and its processor time."""
        # In one request: they belong to one moment, however slow dom0 is.
        now_s, rated, timed = self.one.read_handler('clock.run').split()
        cpu_s = self.dom0.check('xl list timed').split()[-1]
        return float(now_s.strip('"')), int(rated), int(timed.strip('"')), \
            float(cpu_s)


class UnfinishedSaveTest(base.CosmosTest):
    """cosmosd's guest with a port of the switch and a stock vif."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.dom0.check(
            'set -e; lab-net bridge br0; '
            'lab-net endpoint br0 near 10.1.0.1/24; ip netns add far; '
            'ip link add vx address 02:00:00:00:00:f0 type veth '
            'peer name eth0 address 02:00:00:00:00:f1 netns far; '
            'ip link set vx up; ip -n far link set eth0 up; '
            'ip -n far address add 10.2.0.1/24 dev eth0; '
            f'mkdir -p {_FULL}')
        toolstack.start(cls.host, 'valed')
        toolstack.start(cls.host, 'cosmosd')
        cls.dom0.check(toolstack.command(
            'vale-ctl', *'attach vale0:far --segment 7 --kind veth --ifname vx'
            ' --mac 02:00:00:00:00:f1 --allow 10.2.0.1/32'.split()))
        cls.dom0.put_text(_answers(0, 2) + _answers(1, 1), '/root/both.click')
        cls._cosmos(
            'create --name both --config /root/both.click --memory 8 '
            f'--vif port=b,segment=7,mac={_MAC.format(0)},ip=10.2.0.9 '
            f'--vif bridge=br0,mac={_MAC.format(1)} --timeout 60')

    @classmethod
    def _run(cls, arguments):
        return cls.dom0.run(
            toolstack.command('cosmos', *arguments.split()), timeout_s=120)

    @classmethod
    def _cosmos(cls, arguments):
        done = cls._run(arguments)
        if done.status != 0:
            raise AssertionError(f'{arguments}: {done.err}')
        return done.out

    def _assert_answers(self):
        self.assertEqual('running', self._info()['state'])
        self.dom0.check(f'! ls {toolstack.FOLDER}/state/saved/*')
        for namespace, address in (('far', '10.2.0.9'), ('near', '10.1.0.9')):
            out = self.dom0.check(f'ip netns exec {namespace} '
                                  f'ping -c 3 -i 0.2 -w 50 {address}')
            self.assertIn(' 0% packet loss', out)

    def _info(self):
        return json.loads(self._cosmos('info both -o json'))

    @base.slow
    def test_the_network_goes_on(self):
        self._assert_answers()
        domid = self._info()['domid']
        for command in (f'xl save -c {domid} /run/both',
                        f'mount -t tmpfs -o size=1m full {_FULL}; '
                        f'! xl save {domid} {_FULL}/both'):
            with self.subTest(command=command):
                self.dom0.check(command, timeout_s=120)
                self._assert_answers()

    @base.slow
    def test_cosmosd_saves_to_a_full_disk(self):
        saved = f'{toolstack.FOLDER}/state/saved'
        self.dom0.check(f'mount -t tmpfs -o size=1m full {saved}')
        done = self._run('save both')
        self.dom0.check(f'umount {saved}')
        self.assertEqual(1, done.status)
        self._assert_answers()

    @base.slow
    def test_cosmosd_is_killed_in_mid_save(self):
        for moment_s in _KILLS_S:
            with self.subTest(moment_s=moment_s):
                save = toolstack.command('cosmos', 'save', 'both')
                self.dom0.check(f'{save} >/dev/null 2>&1 & sleep {moment_s}; '
                                'kill -9 $(pidof cosmosd); wait')
                toolstack.start(self.host, 'cosmosd')
                if self._info()['state'] == 'saved':
                    self._cosmos('restore both')
                self._assert_answers()


@base.slow
class IgnoredTest(base.XenTest):
    """The console reports requests that a guest ignores."""

    def _guest(self, kind):
        one = guest.Guest(self.dom0, f'deaf-{kind}', kind).create()
        self.addCleanup(one.destroy)
        self.assertEqual(('Running', ''), one.install('Idle -> Discard;'))
        return one

    def test_nmi_memory_and_the_old_keys(self):
        for kind in ('pv', 'pvh'):
            with self.subTest(kind=kind):
                one = self._guest(kind)
                self.dom0.check(
                    f'for t in nmi power sleep reset init s3resume nmi; do '
                    f'xl trigger {one.name} $t; done; '
                    f'xl mem-set {one.name} 6; xenstore-write '
                    f'/local/domain/{one.domid}/clickos/0/status Running')
                lines = ['memory: a target of 6144 KiB is ignored',
                         'store: the keys of ClickOS of 2014']
                lines += ['nmi: ignored'] if kind == 'pvh' else []
                self.wait_for(
                    lambda: all(line in one.console() for line in lines), 10)
                self.assertEqual((200, 'Idle -> Discard;'),
                                 one.request('read config'))

    def test_a_pv_guest_does_not_offer_to_be_saved(self):
        for kind, offers in (('pv', False), ('pvh', True)):
            with self.subTest(kind=kind):
                one = self._guest(kind)
                there = self.dom0.run('xenstore-exists /local/domain/'
                                      f'{one.domid}/control/feature-suspend')
                self.assertEqual(offers, there.status == 0)
                self.assertEqual(not offers, bool(re.search(
                    'a PV guest cannot be saved', one.console())))
