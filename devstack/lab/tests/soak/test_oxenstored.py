# SPDX-License-Identifier: Apache-2.0
"""oxenstored with our patches: a host like others, hostile guests, no leak."""

import concurrent.futures
import time

from clickos_lab import bounds
from clickos_lab.suites import progress
from clickos_lab.xen import image
from clickos_lab.xen import patched
from clickos_lab.xen import qemu
from clickos_lab.xen import toolstack
from tests.soak import test_cycles
from tests.xen import base
from tests.xen import guest
from tests.xen import test_toolstack

_HOSTILE = 'hostile-store'
_UPDATED = f'{patched.FOLDER}/oxenstored'
#: Half of them are made before the hostile guest.
_VICTIMS = 8
_ROUNDS = 5
#: Nanoseconds for which a process has run.
_SPENT = 'cut -d " " -f 1 /proc/$(pidof oxenstored)/schedstat'
_WATCHERS, _WRITES = 50, 300
#: Many clients watch a node; others change it, in transactions and without.
#: Each client has to hear of each change, in their order.
_STRESS = f"""
set -e
mkdir /run/stress
for one in $(seq {_WATCHERS}); do
    xenstore-watch -n {_WRITES + 1} /stress >/run/stress/$one &
done
until [ $(cat /run/stress/* | wc -l) = {_WATCHERS} ]; do sleep 0.1; done
(echo /stress; seq {_WRITES} | sed s,^,/stress/,) >/run/expected
for number in $(seq {_WRITES}); do
    xenstore-write /stress/$number x
    xenstore-write /beside/$((number % 7)) x /beside/$((number % 5)) y &
done
wait
for one in /run/stress/*; do
    cmp $one /run/expected
done
xenstore-rm /stress
xenstore-rm /beside
"""
#: What oxenstored may need of a processor besides a guest that it ignores.
_IDLE_SHARE = 0.3


class Patched:
    """A host on which both daemons are patched."""

    @classmethod
    def start_host(cls, contents):
        """Boot it with the daemons in dom0's root."""
        patched.build(cls.state, cls.places)
        cls.host.boot_and_connect(
            qemu.Machine(root=patched.overlay(cls.places)), contents)


class StoreTest(Patched, test_toolstack.OnEitherStore,
                test_toolstack.ToolstackCase):
    """The tests of either store."""

    store = 'oxenstored'


class LeakTest(Patched, test_cycles.CyclesTest):
    """Domains that come and go leave nothing in the store's memory."""

    growth = {**test_cycles.CyclesTest.growth,
              'oxenstored': 'max_cycle_patched_store_growth_kib'}


class Guests(base.CosmosTest):
    """A host with guests that answer by the store."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        toolstack.start(cls.host, 'valed')
        toolstack.start(cls.host, 'cosmosd')
        cls.dom0.put_text('Idle -> c :: Counter -> Discard;',
                          '/root/victim.click')
        for number in range(_VICTIMS // 2):
            cls._victim(number)

    @classmethod
    def _victim(cls, number):
        cls._cosmos(f'create --name victim{number} --timeout 60 '
                    '--config /root/victim.click')

    @classmethod
    def _cosmos(cls, arguments):
        return cls.dom0.check(f'{toolstack.command("cosmos")} {arguments}',
                              timeout_s=90)

    def _ask(self, guests):
        """Ask guests in turn; return how long the slowest answer took."""
        slowest_s = 0
        for number in list(range(guests)) * _ROUNDS:
            began_s = time.monotonic()
            self._cosmos(f'read victim{number} c.count')
            slowest_s = max(slowest_s, time.monotonic() - began_s)
        bounds.hold('max_hostile_store_answer_seconds', slowest_s)
        return slowest_s


class LiveUpdateTest(Guests):
    """A host that begins with Debian's oxenstored."""

    @classmethod
    def add_files(cls, contents):
        super().add_files(contents)
        patched.build(cls.state, cls.places)
        patched.add_daemons(cls.places, contents)

    def test_guests_and_clients_stay(self):
        number = self.dom0.check('pidof oxenstored')
        for _ in range(2):
            self.dom0.check(f'xenstore-control live-update {_UPDATED}')
            self._ask(_VICTIMS // 2)
        self.assertEqual(number, self.dom0.check('pidof oxenstored'))
        self.assertEqual(_UPDATED, self.dom0.check(
            'readlink /proc/$(pidof oxenstored)/exe').strip())
        self._victim(_VICTIMS)
        self._cosmos(f'destroy victim{_VICTIMS}')


class StressTest(Patched, Guests):
    """Many connections, watches and transactions at once."""

    def test_each_watcher_hears_of_each_change_in_order(self):
        with concurrent.futures.ThreadPoolExecutor() as pool:
            stress = pool.submit(self.dom0.check, _STRESS, timeout_s=280)
            while not stress.done():
                self._ask(_VICTIMS // 2)
            stress.result()


class HostileTest(Patched, Guests):
    """Guests that break the rules of the store's ring."""

    @classmethod
    def add_files(cls, contents):
        super().add_files(contents)
        image.build(cls.state, [_HOSTILE])
        contents.add(image.folder(cls.state) / _HOSTILE,
                     f'{image.FOLDER}/{_HOSTILE}')

    def _attack(self, mode):
        """Start a guest between the victims; it ends with the test."""
        one = guest.Guest(self.dom0, mode, 'pvh', f'extra = "{mode}"')
        one.run(_HOSTILE)
        self.addCleanup(one.destroy)
        for number in range(_VICTIMS // 2, _VICTIMS):
            self._victim(number)
            self.addCleanup(self._cosmos, f'destroy victim{number}')

    def _others_are_served(self):
        progress.note(f'{self._testMethodName}: slowest answer '
                      f'{self._ask(_VICTIMS):.2f} s')

    def _share(self, seconds=10):
        """Return the part of a processor that oxenstored takes."""
        out = self.dom0.check(f'{_SPENT}; sleep {seconds}; {_SPENT}')
        first, last = map(int, out.split())
        return (last - first) / (seconds * 1e9)

    def _is_ignored(self):
        share = self._share()
        progress.note(f'{self._testMethodName}: oxenstored takes '
                      f'{share:.2f} of a processor')
        self.assertLess(share, _IDLE_SHARE)

    def test_events_without_requests(self):
        self._attack('events')
        self._others_are_served()

    def test_more_requests_than_the_ring_holds(self):
        self._attack('requests')
        self._others_are_served()
        self._is_ignored()

    def test_more_answers_than_the_ring_holds(self):
        self._attack('answers')
        self._others_are_served()
        self._is_ignored()

    def test_garbage(self):
        self._attack('garbage')
        self._others_are_served()
