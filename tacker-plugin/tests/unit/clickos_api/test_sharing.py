# SPDX-License-Identifier: Apache-2.0
"""Shares of limits: what guests may use together, whatever happens."""

import copy
import json
import random
import unittest

from clickos_api.state import sharing

TOTAL = 1250000
LIMITS = [
    {'name': 'rate', 'kind': 'rate', 'handler': 's.share', 'total': TOTAL},
    {'name': 'quota', 'kind': 'quota', 'handler': 'q.share',
     'total': 8 * 2 ** 20}]
STEPS = 800


class Guest:
    """A guest that uses all that it may, and whose answers get lost."""

    def __init__(self, chance):
        self._chance = chance
        self.number = 0
        self.alive = True
        self.passed = 0
        self.start()

    def start(self):
        """Begin again, without what a coordinator wrote."""
        self.incarnation = self._chance.randrange(2 ** 64)
        self.shares, self.used, self.late = [0, 0], [0, 0], []

    def write(self, number, incarnation, shares):
        """Take a write; return whether it was accepted, as cosmosd does."""
        if incarnation != self.incarnation or number <= self.number:
            return False
        self.number, self.shares = number, shares
        return True

    def work(self, want):
        """Use the quota, all of it or a part."""
        least = min(self.used[1], self.shares[1])
        use = int((self.shares[1] - least) * want)
        self.used[1] += use
        self.passed += use
        self.used[0] += int(self.shares[0] * want)


class World:
    """A coordinator, its ledger as it is stored, and guests."""

    def __init__(self, seed):
        self.chance = random.Random(seed)
        self.guests, self.gone, self.numbers = {}, [], 0
        self.stored = json.dumps(None)
        self.declare(2)

    def ledger(self):
        """Return the ledger as a coordinator that starts has it."""
        return sharing.Ledger(json.loads(self.stored))

    def store(self, ledger):
        """Store the ledger."""
        self.stored = json.dumps(ledger.content)

    def declare(self, more=0, without=()):
        """Let guests join and leave."""
        for _ in range(more):
            self.guests[f's{len(self.guests)}'] = Guest(self.chance)
        ledger = self.ledger()
        members = ledger.members
        rate, quota = copy.deepcopy(LIMITS)
        rate['name'] = self.chance.choice(('rate', 'speed'))
        ledger.declare([rate, quota], [
            name for name, guest in self.guests.items()
            if guest.alive and name not in without and (
                name not in members or not members[name]['is_leaving'])])
        self.store(ledger)

    def round(self, loses=0.0):
        """Look at the guests, and write to them.

        :param loses: how likely an answer or a request gets lost
        """
        ledger = self.ledger()
        for name in list(ledger.members):
            guest = self.guests[name]
            if not guest.alive:
                ledger.drop(name)
                continue
            values = [sharing.number(f'{share} {used}') for share, used in zip(
                guest.shares, guest.used)]
            heard = self.chance.random() >= loses
            ledger.observe(name, str(guest.incarnation),
                           values if heard else None, 1)
        writes = ledger.plan()
        self.store(ledger)
        if self.chance.random() < loses:
            return      # the coordinator died
        for name, shares in writes.items():
            self.numbers += 1
            guest = self.guests[name]
            write = self.numbers, guest.incarnation, shares
            if self.chance.random() < loses:
                guest.late.append(write)     # it arrives later, or never
            elif guest.write(*write) and self.chance.random() >= loses:
                ledger.accept(name, shares)
        self.store(ledger)

    def event(self):
        """Let something happen."""
        name = self.chance.choice(list(self.guests))
        guest = self.guests[name]
        what = self.chance.randrange(13)
        if what == 0 and len(self.guests) < 40:
            self.declare(1)
        elif what == 1:
            self.declare(without=(name,))
        elif what == 2:
            guest.start()
        elif what == 3 and self.chance.random() < 0.3:
            guest.alive = False
        elif what == 12:
            ledger = self.ledger()
            ledger.delete()
            self.store(ledger)
            if self.chance.random() < 0.5:
                self.round(0.5)
            self.declare()
        elif what < 6 and guest.late:
            guest.write(*guest.late.pop(self.chance.randrange(
                len(guest.late))))
        else:
            guest.work(self.chance.choice((0, 0.1, 0.5, 1)))

    def rate(self):
        """Return what the guests may send a second together."""
        return sum(guest.shares[0] for guest in self.guests.values()
                   if guest.alive)

    def quota(self):
        """Return what the guests have used and may yet use of the quota."""
        return sum(guest.passed + guest.alive * max(
            0, guest.shares[1] - guest.used[1])
            for guest in self.guests.values())


class InvariantTest(unittest.TestCase):
    """Shares are never more than a limit, in any order of events."""

    def test_any_order_of_joins_leaves_losses_and_restarts(self):
        for seed in range(40):
            world = World(seed)
            for step in range(STEPS):
                if world.chance.random() < 0.5:
                    world.round(world.chance.choice((0, 0.2, 0.7)))
                else:
                    world.event()
                with self.subTest(seed=seed, step=step):
                    self.assertLessEqual(world.rate(), TOTAL)
                    self.assertLessEqual(world.quota(), LIMITS[1]['total'])

    def test_all_is_given_again_soon_after_it(self):
        for seed in range(20):
            world = World(seed)
            for _ in range(STEPS // 8):
                world.round(0.5)
                world.event()
            world.declare(1)
            for _ in range(6):
                world.round()
            with self.subTest(seed=seed):
                self.assertGreater(world.rate(), TOTAL - 64)

    def test_a_foreign_value_is_no_share(self):
        for text in ('', '1', '1 2 3', '-1 2', '1.5 2', 'a b', '1' * 21 + ' 2',
                     '٣ ٤'):
            self.assertIsNone(sharing.number(text))
        self.assertEqual((5, sharing.MAX_TOTAL),
                         sharing.number('5 18446744073709551615'))


def _limit(handler):
    return {'name': 'rate', 'kind': 'rate', 'handler': handler,
            'total': 1000}


class FormerHandlerTest(unittest.TestCase):
    """What guests have at handlers that no limit has any more."""

    def setUp(self):
        super().setUp()
        self.ledger = sharing.Ledger()
        #: share by handler, as configured
        self.guests = {name: {'a': 7000, 'b': 8000} for name in ('s', 't')}
        self.silent = set()

    def declare(self, handler):
        self.ledger.declare([_limit(handler)], ['s', 't'])

    def round(self, loses=False):
        """Do a round; all answers to its writes may get lost."""
        self.ledger = sharing.Ledger(json.loads(json.dumps(
            self.ledger.content)))
        handlers = self.ledger.handlers()
        for name, guest in self.guests.items():
            self.ledger.observe(
                name, 'i', None if name in self.silent else [
                    (guest[each], 0) for each in handlers], 1)
        for name, shares in self.ledger.plan().items():
            self.guests[name].update(zip(handlers, shares))
            if not loses:
                self.ledger.accept(name, shares)
        for name, shares in self.ledger.restores().items():
            self.guests[name].update(shares)
            for handler in () if loses else shares:
                self.ledger.restored(name, handler)

    def test_guests_get_their_own_shares_back(self):
        self.declare('a')
        self.round()
        self.assertEqual(500, self.guests['s']['a'])
        self.declare('b')
        self.round()
        self.assertEqual([{'a': 7000, 'b': 500}] * 2,
                         list(self.guests.values()))
        self.declare('a')
        self.round()
        self.round()
        self.assertEqual([{'a': 500, 'b': 8000}] * 2,
                         list(self.guests.values()))
        self.assertEqual({}, self.ledger.restores())

    def test_a_silent_guest_gets_it_when_it_answers(self):
        self.declare('a')
        self.round()
        self.silent = {'t'}
        self.declare('b')
        self.round()
        self.assertEqual(500, self.guests['t']['a'])
        self.silent = set()
        self.round()
        self.assertEqual(7000, self.guests['t']['a'])

    def test_a_limit_that_returns_counts_what_a_silent_guest_has(self):
        self.declare('a')
        self.round()
        self.silent = {'t'}
        for handler in 'ba':
            self.declare(handler)
            for _ in range(3):
                self.round()
        self.assertEqual([500, 500], [each['a'] for each
                                      in self.guests.values()])

    def test_a_share_that_may_be_given_back_is_in_doubt(self):
        self.declare('a')
        self.round()
        self.declare('b')
        self.assertEqual({}, self.ledger.in_doubt({'a'}))
        self.silent = {'t'}
        self.round(loses=True)
        self.assertEqual({'s': ['a']}, self.ledger.in_doubt({'a', 'b'}))
        self.round()
        self.assertEqual({}, self.ledger.in_doubt({'a', 'b'}))

    def test_a_share_of_a_guest_never_counts_as_given(self):
        self.declare('a')
        self.round()
        self.declare('b')
        self.round(loses=True)
        for member in self.ledger.members.values():
            self.assertEqual(500, member['former']['a']['bound'])

    def test_a_guest_that_starts_again_needs_nothing(self):
        self.declare('a')
        self.round()
        self.silent = {'t'}
        self.declare('b')
        self.round()
        self.ledger.observe('t', 'j', None, 1)
        self.assertEqual({}, self.ledger.restores())
        self.assertEqual({'b'}, self.ledger.handlers_of('t'))

    def test_a_guest_that_leaves_gets_it_before_it_is_forgotten(self):
        self.declare('a')
        self.round()
        self.ledger.declare([_limit('b')], ['s'])
        for _ in range(3):
            self.round()
            self.guests = {name: guest for name, guest in self.guests.items()
                           if name in self.ledger.members} or self.guests
        self.assertNotIn('t', self.ledger.members)

    def read_before(self):
        """Read the ledger as one of before."""
        content = self.ledger.content
        for member in content['members'].values():
            del member['origins'], member['former']
        self.ledger = sharing.Ledger(content)

    def test_a_guest_of_before_that_never_answered_keeps_its_share(self):
        self.silent = {'t'}
        self.declare('a')
        self.round()
        self.read_before()
        self.silent = set()
        for _ in range(3):
            self.round()
        self.assertEqual(500, self.guests['t']['a'])
        self.declare('b')
        self.round()
        self.assertEqual(7000, self.guests['t']['a'])

    def test_a_ledger_of_before_is_read(self):
        self.declare('a')
        self.round()
        self.read_before()
        self.declare('b')
        self.round()
        self.assertEqual(500, self.guests['s']['a'])
        self.assertEqual({}, self.ledger.restores())


class ShareTest(unittest.TestCase):
    """What guests get, and when."""

    def setUp(self):
        super().setUp()
        self.world = World(1)
        self.guests = self.world.guests

    def rounds(self, count, *wants):
        """Let guests use parts of their shares, and look after each."""
        for _ in range(count):
            for guest, want in zip(self.guests.values(), wants):
                guest.work(want)
            self.world.round()

    def test_a_busy_guest_has_what_idle_ones_do_not_need(self):
        self.world.declare(1)
        self.rounds(4, 1, 1, 1)
        for guest in self.guests.values():
            self.assertAlmostEqual(TOTAL / 3, guest.shares[0], delta=9)
        self.rounds(3, 1, 0, 0)
        busy, *idle = [guest.shares[0] for guest in self.guests.values()]
        self.assertGreaterEqual(busy, TOTAL * 5 // 6)
        self.assertGreaterEqual(min(idle), TOTAL // 12)
        self.rounds(4, 1, 1, 1)
        self.assertGreater(min(guest.shares[0] for guest
                               in self.guests.values()), TOTAL / 4)

    def test_a_new_guest_has_a_share_after_two_rounds(self):
        self.rounds(3, 1, 1)
        self.world.declare(1)
        self.rounds(2, 1, 1)
        self.assertGreater(self.guests['s2'].shares[0], TOTAL / 4)

    def test_one_guest_has_all(self):
        self.world.declare(without=('s1',))
        self.rounds(3)
        self.assertEqual(TOTAL, self.guests['s0'].shares[0])
        self.assertEqual(0, self.guests['s1'].shares[0])
        self.assertEqual(['s0'], list(self.world.ledger().members))

    def test_a_guest_that_leaves_returns_what_it_did_not_use(self):
        self.rounds(3, 0.5, 0.5)
        used = self.guests['s0'].passed + self.guests['s1'].passed
        self.world.declare(without=('s1',))
        self.rounds(2)
        shown = self.world.ledger().shown()[1]
        self.assertEqual(used, shown['used'])

    def test_a_dead_guest_loses_one_lease(self):
        self.rounds(3, 0.5, 0.5)
        used = self.guests['s0'].passed + self.guests['s1'].passed
        self.guests['s1'].alive = False
        self.rounds(1)
        shown = self.world.ledger().shown()[1]
        self.assertLessEqual(used, shown['used'])
        self.assertLessEqual(shown['used'],
                             used + LIMITS[1]['total'] // 64 * 3 // 2)

    def test_the_whole_quota_is_used_by_one_of_several(self):
        self.world.declare(2)
        self.rounds(400, 1, 0, 0, 0)
        self.assertGreater(self.guests['s0'].passed,
                           LIMITS[1]['total'] - 4 * sharing.LEAST_LEASE)

    def test_a_lower_total_takes_shares_back(self):
        self.rounds(3, 1, 1)
        ledger = self.world.ledger()
        ledger.declare([{**each, 'total': each['total'] // 4}
                        for each in LIMITS], list(self.guests))
        self.world.store(ledger)
        self.rounds(2)
        self.assertLessEqual(self.world.rate(), TOTAL // 4)

    def test_a_quota_that_was_lower_for_a_time_forgets_no_use(self):
        self.rounds(100, 1, 1)
        used = self.guests['s0'].passed + self.guests['s1'].passed
        for total in (1, LIMITS[1]['total']):
            ledger = self.world.ledger()
            ledger.declare([LIMITS[0], {**LIMITS[1], 'total': total}],
                           list(self.guests))
            for guest in self.guests.values():
                guest.start()
            self.world.store(ledger)
            self.world.round()
        self.assertGreaterEqual(self.world.ledger().shown()[1]['used'], used)

    def test_no_shown_number_is_larger_than_an_answer_may_have(self):
        self.rounds(3, 1, 1)
        ledger = self.world.ledger()
        for name, guest in self.guests.items():
            ledger.observe(name, str(guest.incarnation),
                           [(sharing.MAX_TOTAL, sharing.MAX_TOTAL)] * 2, 0)
        for limit in ledger.shown():
            for each in (limit, *limit['guests']):
                self.assertLessEqual(each['used'], sharing.MAX_TOTAL)

    def test_a_liar_gets_no_share_of_others(self):
        self.rounds(3, 1, 1)
        ledger = self.world.ledger()
        for _ in range(20):
            honest = self.guests['s0']
            ledger.observe('s1', str(self.guests['s1'].incarnation),
                           [(sharing.MAX_TOTAL, sharing.MAX_TOTAL)] * 2, 1)
            ledger.observe('s0', str(honest.incarnation), [
                (honest.shares[0], honest.used[0] + honest.shares[0]),
                (honest.shares[1], honest.used[1])], 1)
            honest.used[0] += honest.shares[0]
            for name, shares in ledger.plan().items():
                if name == 's0':
                    honest.shares = shares
                ledger.accept(name, shares)
        self.assertGreater(honest.shares[0], TOTAL // 3)
        self.assertGreaterEqual(honest.shares[1], honest.used[1])
