# SPDX-License-Identifier: Apache-2.0
"""Patched daemons and simulated guests, without a hypervisor.

OXENSTORED and XENCONSOLED name other daemons, to see what those do.
"""

import os
import pathlib
import resource
import tempfile
import time
import unittest

from clickos_lab import bounds
from clickos_lab import paths
from clickos_lab.suites import progress
from clickos_lab.xen import patched
from clickos_lab.xen import xen_paths
from tests.soak.store import consoles
from tests.soak.store import daemon

#: Guests that come and go, in each half.
_SHORT_LIVED = 2000
_LEFT = 'max_dead_guest_store_memory_kib'
_FEW, _MANY = 10, 1000
_REQUESTS, _ROUNDS = 100, 60
_BROKEN_RING = 'max_broken_ring_processor_ratio'
#: For so long a daemon that should ignore a guest is measured.
_IDLE_S = 2


class AloneCase(unittest.TestCase):
    """A daemon for each test, with a client in dom0."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        state = paths.State()
        found = xen_paths.XenPaths(state)
        cls.packages = found.packages
        cls.program = os.environ.get('OXENSTORED')
        if not cls.program:
            patched.build(state, found)
            cls.program = patched.daemon(found, 'oxenstored')
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.library = daemon.build(cls.packages, pathlib.Path(folder.name))

    def setUp(self):
        super().setUp()
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.daemon = daemon.Daemon(self.program, self.library, self.packages,
                                    pathlib.Path(folder.name))
        self.addCleanup(self.daemon.stop)
        self.dom0 = self.daemon.client()
        self.addCleanup(self.dom0.close)

    def guest(self, domid, port=None):
        """Return a new guest, which owns its folder."""
        one = self.daemon.introduce(self.dom0, domid, port)
        self.dom0.write(_folder(domid), '')
        self.dom0.own(_folder(domid), domid)
        return one

    def console(self, of, domid):
        """Return the console of a new guest, with its terminal."""
        one = consoles.Console(of, domid)
        self.addCleanup(one.close)
        path = f'{_folder(domid)}/console'
        self.dom0.write(f'{_folder(domid)}/name', f'guest{domid}')
        for node, value in one.nodes.items():
            self.dom0.write(f'{path}/{node}', value)
        one.guest = self.guest(domid)
        deadline_s = time.monotonic() + daemon.WAIT_S
        while b'tty' not in self.dom0.request(daemon.DIRECTORY, path):
            daemon.check(deadline_s)
        one.open_terminal(self.dom0.request(daemon.READ, f'{path}/tty'))
        return one

    def watch(self, path):
        """Let dom0 watch a path."""
        self.dom0.request(daemon.WATCH, path, 'token')
        self.dom0.wait_for_event(path)

    def is_served(self, one, value='x'):
        """Let a guest write and read."""
        path = f'{_folder(one.domid)}/key'
        one.write(path, value)
        self.assertEqual(value, one.request(daemon.READ, path).decode())

    def spent_share(self):
        """Return for which part of some seconds the daemon runs."""
        before_ns = self.daemon.spent_ns()
        time.sleep(_IDLE_S)
        return (self.daemon.spent_ns() - before_ns) / _IDLE_S / 1e9


def _folder(domid):
    return f'/local/domain/{domid}'


class DepartureTest(AloneCase):
    """Guests that have gone."""

    def _lives(self, domid, end):
        one = self.guest(domid)
        one.request(daemon.WATCH, 'watched', 'token')
        one.request(daemon.START, '')
        self.is_served(one)
        end(one)
        self.dom0.wait_for_event('@releaseDomain')
        self.dom0.request(daemon.REMOVE, _folder(domid))

    def _release(self, one):
        self.dom0.request(daemon.RELEASE, one.domid)
        one.page_file.unlink()

    def _growth_kib(self, end):
        """Return what each guest of the second half leaves."""
        self.watch('@releaseDomain')
        sizes_kib = []
        for _ in range(2):
            for number in range(_SHORT_LIVED):
                self._lives(1 + number % 900, end)
            sizes_kib.append(self.daemon.resident_kib())
        return (sizes_kib[1] - sizes_kib[0]) / _SHORT_LIVED

    def test_a_dead_guest_leaves_nothing(self):
        left_kib = self._growth_kib(self.daemon.kill)
        progress.note(f'each of {_SHORT_LIVED:,} dead guests leaves '
                      f'{left_kib:.2f} KiB')
        bounds.hold(_LEFT, left_kib)
        self.assertEqual(2, self.daemon.bound_ports())

    def test_a_released_guest_leaves_nothing(self):
        bounds.hold(_LEFT, self._growth_kib(self._release))
        self.assertEqual(2, self.daemon.bound_ports())

    def test_an_event_of_a_guest_that_has_gone(self):
        one, other = self.guest(1), self.guest(2)
        self._release(one)
        for _ in range(100):
            one.notify()
        self.is_served(other)

    def test_a_number_is_used_again(self):
        self.watch('@releaseDomain')
        for value in ('first', 'second'):
            one = self.guest(7, 100)
            with self.subTest(value):
                self.assertEqual(b'', one.request(daemon.READ, _folder(7)))
                self.is_served(one, value)
            self.daemon.kill(one)
            self.dom0.wait_for_event('@releaseDomain')

    def test_the_next_guest_of_a_number_has_its_full_quota(self):
        self.watch('@releaseDomain')
        for _ in range(2):
            one = self.guest(7)
            for number in range(900):
                one.write(f'{_folder(7)}/{number}', '')
            self.daemon.kill(one)
            self.dom0.wait_for_event('@releaseDomain')

    def test_the_death_of_a_guest_with_a_penalty_is_told(self):
        self.watch('@releaseDomain')
        one, other = self.guest(1), self.guest(2)
        for _ in range(3):
            self._conflict(one, other)
        self.daemon.kill(one)
        self.dom0.wait_for_event('@releaseDomain')
        self.is_served(other)

    def _conflict(self, guilty, victim):
        """Spoil a transaction of one guest by a write of another."""
        path = _folder(guilty.domid)
        self.dom0.request(daemon.SET_PERMS, path, f'b{guilty.domid}')
        number = victim.request(daemon.START, '').rstrip(b'\0')
        inside = {'transaction': int(number)}
        value = victim.request(daemon.READ, path, **inside)
        victim.write(f'{_folder(victim.domid)}/copy', value.decode(), **inside)
        guilty.write(path, f'{value.decode()}x')
        with self.assertRaisesRegex(daemon.Refused, 'EAGAIN'):
            victim.request(daemon.END, 'T', **inside)


class ChannelTest(AloneCase):
    """Guests that go on with the same page."""

    def test_another_event_channel(self):
        one = self.guest(1, 100)
        self.dom0.request(daemon.INTRODUCE, 1, 1, 200)
        one.port = 200
        self.is_served(one)
        self.watch('@releaseDomain')
        self.daemon.kill(one)
        self.dom0.wait_for_event('@releaseDomain')
        self.assertEqual(2, self.daemon.bound_ports())

    def test_a_reconnected_guest_has_no_watches(self):
        one = self.guest(1)
        for _ in range(3):
            one.request(daemon.WATCH, 'key', 'token')
            one.wait_for_event('key')
            one.reconnect()
        one.request(daemon.WATCH, 'key', 'token')
        one.wait_for_event('key')
        # All events of the change come before the next answer.
        self.is_served(one)
        self.is_served(one)
        self.assertEqual(['key'] * 2, one.wait_for_event('key'))


class HostileTest(AloneCase):
    """Guests that break the rules of their ring."""

    def setUp(self):
        super().setUp()
        self.liar = self.guest(50)
        self.others = [self.guest(domid) for domid in range(1, 100, 7)
                       if domid != 50]

    def _others_are_served(self):
        for _ in range(3):
            for one in self.others:
                self.is_served(one)

    def _is_ignored(self):
        self.dom0.write(f'{_folder(50)}/watched', 'changed')
        share = self.spent_share()
        progress.note(f'{self._testMethodName}: {share:.2f} of a processor')
        bounds.hold(_BROKEN_RING, share)

    def test_more_requests_than_the_ring_holds(self):
        self.liar.request(daemon.WATCH, 'watched', 'token')
        self.liar.break_requests()
        self._others_are_served()
        self._is_ignored()

    def test_more_answers_than_the_ring_holds(self):
        self.liar.break_answers()
        self._others_are_served()
        self._is_ignored()

    def test_events_without_requests(self):
        for one in self.others * 3:
            for _ in range(100):
                self.liar.notify()
            self.is_served(one)

    def test_answers_that_nobody_takes(self):
        """It asks and takes nothing, then it continues."""
        path = f'{_folder(50)}/long'
        self.liar.write(path, 'x' * 1500)
        self.liar.ask_without_taking(daemon.READ, path, 30)
        self._others_are_served()
        bounds.hold(_BROKEN_RING, self.spent_share())
        for _ in range(30):
            self.assertEqual(b'x' * 1500, self.liar.receive()[2])
        self.is_served(self.liar)


class WatchTest(AloneCase):
    """Watch events on their way to guests."""

    def test_each_guest_hears_of_each_change_in_order(self):
        guests = [self.guest(domid) for domid in range(1, 41)]
        self.dom0.write('/shared', '')
        self.dom0.request(daemon.SET_PERMS, '/shared', 'r0')
        for one in guests:
            one.request(daemon.WATCH, '/shared', 'token')
            one.wait_for_event('/shared')
        expected = [f'/shared/{number}' for number in range(200)]
        for path in expected:
            self.dom0.write(path, '')
        for one in guests:
            self.assertEqual(expected, one.wait_for_event(expected[-1]))

    def test_a_guest_that_takes_no_events(self):
        """Others hear of changes; it hears of them when it takes them."""
        slow, quick = self.guest(1), self.guest(2)
        self.dom0.write('/shared', '')
        self.dom0.request(daemon.SET_PERMS, '/shared', 'r0')
        for one in (slow, quick):
            one.request(daemon.WATCH, '/shared', 'token')
            one.wait_for_event('/shared')
        expected = [f'/shared/{number}' for number in range(500)]
        for path in expected:
            self.dom0.write(path, '')
            quick.wait_for_event(path)
        self.assertEqual(expected, slow.wait_for_event(expected[-1]))


class ListTest(AloneCase):
    """Lists that are longer than a message."""

    def setUp(self):
        super().setUp()
        self.names = [str(number) for number in range(10000, 11500)]
        for name in self.names:
            self.dom0.write(f'/many/{name}', '')
        self.dom0.request(daemon.SET_PERMS, '/many', 'r0')

    def test_a_client_and_a_guest_get_all_names(self):
        printed = self.daemon.program('list', '/many').split()
        self.assertEqual(self.names, sorted(printed))
        for one in (self.guest(1), self.dom0):
            with self.assertRaisesRegex(daemon.Refused, 'E2BIG'):
                one.request(daemon.DIRECTORY, '/many')
            self.assertEqual(printed, one.names('/many'))

    def test_short_lists(self):
        self.dom0.write('/few/one', '')
        self.assertEqual(['one'], self.dom0.names('/few'))
        self.assertEqual([], self.dom0.names('/few/one'))

    def test_a_change_between_parts_is_seen(self):
        first = self.dom0.request(daemon.PART, '/many', 0).split(b'\0')
        self.assertEqual(first, self.dom0.request(
            daemon.PART, '/many', 0).split(b'\0'))
        self.dom0.request(daemon.REMOVE, '/many/10700')
        second = self.dom0.request(daemon.PART, '/many', 1200).split(b'\0')
        self.assertNotEqual(first[0], second[0])
        self.names.remove('10700')
        self.assertEqual(self.names, sorted(self.dom0.names('/many')))

    def test_wrong_requests(self):
        one = self.guest(1)
        self.assertRegex(one.request(daemon.PART, '/many', 10 ** 6),
                         rb'^\d+\0\0$')
        for words, error in ((['/many'], 'EINVAL'), (['/none', 0], 'ENOENT'),
                             (['/many', 9 * 10 ** 18], 'EINVAL')):
            with self.assertRaisesRegex(daemon.Refused, error):
                one.request(daemon.PART, *words)
        self.is_served(one)


class GrowthTest(AloneCase):
    """The cost of a request next to many guests: two daemons take turns."""

    def setUp(self):
        self.hosts = []
        for count in (_FEW, _MANY):
            super().setUp()
            guests = [self.guest(domid) for domid in range(1, count + 1)]
            self.hosts.append((self.daemon, self.dom0, guests[0]))

    def _compare(self, ask):
        """Compare what a request costs each daemon, in its best round."""
        few_us, many_us = map(min, zip(*(
            [self._cost_us(*host, ask) for host in self.hosts]
            for _ in range(_ROUNDS))))
        progress.note(f'{self._testMethodName}: {few_us:.1f} us beside '
                      f'{_FEW} guests, {many_us:.1f} us beside {_MANY:,}')
        bounds.hold('max_store_request_growth_ratio', many_us / few_us)

    def _cost_us(self, of, dom0, one, ask):
        before_ns = of.spent_ns()
        for _ in range(_REQUESTS):
            ask(dom0, one)
        return (of.spent_ns() - before_ns) / _REQUESTS / 1000

    def test_a_request_of_a_client(self):
        self._compare(lambda dom0, one: dom0.request(daemon.READ, _folder(1)))

    def test_a_request_of_a_guest(self):
        self._compare(lambda dom0, one: one.request(daemon.READ, _folder(1)))

    def test_an_event_to_a_guest(self):
        for _, _, one in self.hosts:
            one.request(daemon.WATCH, 'key', 'token')
            one.wait_for_event('key')
        self._compare(_change)

    def test_a_start_and_an_end(self):
        """Their cost has a part that grows: the search for permissions."""
        for _, dom0, _ in self.hosts:
            dom0.request(daemon.WATCH, '@releaseDomain', 'token')
            dom0.wait_for_event('@releaseDomain')
        costs_us = [min(self._life_us(of, dom0) for _ in range(_ROUNDS))
                    for of, dom0, _ in self.hosts]
        progress.note('start and end: {:.0f} us, {:.0f} us'.format(*costs_us))

    def _life_us(self, of, dom0):
        before_ns = of.spent_ns()
        of.kill(of.introduce(dom0, _MANY + 1))
        dom0.wait_for_event('@releaseDomain')
        dom0.request(daemon.READ, '/tool/xenstored')
        return (of.spent_ns() - before_ns) / 1000


class ConsolesTest(AloneCase):
    """xenconsoled, with the store that it needs."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        # Each console has three descriptors.
        most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
        cls.consoled = os.environ.get('XENCONSOLED') or patched.daemon(
            xen_paths.XenPaths(paths.State()), 'xenconsoled')

    def setUp(self):
        super().setUp()
        self.consoles = self._start()

    def _start(self):
        of = consoles.Daemon(self.consoled, self.library, self.packages,
                             self.daemon.folder)
        self.addCleanup(of.stop)
        return of

    def test_both_ways(self):
        some = [self.console(self.consoles, domid) for domid in (1, 2, 3)]
        for number, one in enumerate(some * 3):
            text = f'line {number} of {one.domid}\n'.encode() * 150
            one.write(text)
            self.assertEqual(text, one.shown(len(text)))
            one.typed(text[:300])
            self.assertEqual(text[:300], one.read(300))
        log = (self.daemon.folder / 'guest-guest2.log').read_bytes()
        self.assertIn(b'line 7 of 2\n' * 150, log)

    def test_more_input_than_the_ring_holds(self):
        """The guest takes it without an event; another one has events."""
        one, other = (self.console(self.consoles, domid) for domid in (1, 2))
        text = bytes(range(97, 123)) * 115
        one.typed(text)
        got = b''
        while len(got) < len(text):
            got += one.read(1, is_told=False)
            other.write(b'x')
        self.assertEqual(text, got)

    def test_more_events_than_the_limit(self):
        """Thirty events in 200 ms stop a guest, for this time only."""
        loud, other = (self.console(self.consoles, domid) for domid in (1, 2))
        for number in range(400):
            loud.write(f'{number:4}'.encode())
        other.write(b'quiet')
        self.assertEqual(b'quiet', other.shown(5))
        expected = ''.join(f'{number:4}' for number in range(400)).encode()
        self.assertEqual(expected, loud.shown(1600))

    def test_a_guest_ends_and_its_number_is_used_again(self):
        other = self.console(self.consoles, 2)
        for _ in range(3):
            one = self.console(self.consoles, 1)
            one.write(b'hello')
            self.assertEqual(b'hello', one.shown(5))
            self.daemon.kill(one.guest)
            deadline_s = time.monotonic() + daemon.WAIT_S
            while not one.is_closed():
                daemon.check(deadline_s)
            self.dom0.request(daemon.REMOVE, _folder(1))
        other.write(b'still')
        self.assertEqual(b'still', other.shown(5))

    def test_the_cost_of_an_event(self):
        costs_us = []
        for count in (_FEW, _MANY):
            one = self.console(self.consoles, 1)
            for domid in range(2, count + 1):
                self.console(self.consoles, domid)
            costs_us.append(min(self._line_us(one) for _ in range(_ROUNDS)))
            super().setUp()
            self.consoles = self._start()
        progress.note('an event of a console: {:.0f} us beside {} guests, '
                      '{:.0f} us beside {:,}'.format(
                          costs_us[0], _FEW, costs_us[1], _MANY))
        bounds.hold('max_console_event_growth_ratio',
                    costs_us[1] / costs_us[0])

    def _line_us(self, one):
        before_ns = self.consoles.spent_ns()
        for _ in range(20):
            one.write(b'x')
            one.shown(1)
        return (self.consoles.spent_ns() - before_ns) / 20 / 1000


def _change(dom0, one):
    dom0.write(f'{_folder(1)}/key', '')
    one.wait_for_event('key')
