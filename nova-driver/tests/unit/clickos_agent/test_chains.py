# SPDX-License-Identifier: Apache-2.0
"""Chains follow Neutron: with a cosmosd double."""

import json
import os
import pathlib
import threading
from unittest import mock

from clickos_client import contract
from cosmos_client import CosmosError
import fixtures
import testtools

from clickos_agent import chains
from clickos_agent import ports
from clickos_agent import record
from clickos_agent import resync

NAMES = ['01234567-89ab-4def-8123-00000000000%d' % n for n in range(3)]


def chain(name, hops=1):
    return {'switch': 'vale0', 'chain': name, 'hops': [{}] * hops}


def of_host1(*found):
    return json.dumps({'host': 'host1', 'chains': found})


class Switch:
    """cosmosd's chains; calls are noted."""

    def __init__(self, *names):
        self.chains = {name: chain(name) for name in names}
        self.calls = []
        self.refused, self.reason = None, 'no'
        self.was_set = threading.Event()

    def call(self, verb, **args):
        return getattr(self, '_' + verb.replace('-', '_'))(**args)

    def _chain_list(self):
        return {'chains': list(self.chains.values())}

    def _chain_set(self, **new):
        self.calls.append(('set', new['chain'], len(new['hops'])))
        if new['chain'] == self.refused:
            raise CosmosError('switch', self.reason)
        self.chains[new['chain']] = new
        self.was_set.set()
        return {}

    def _chain_remove(self, switch, chain):
        self.calls.append(('remove', chain))
        del self.chains[chain]
        return {}


class Neutron:
    """Neutron's answer, or its absence."""

    def __init__(self, *wanted):
        self.wanted = list(wanted)
        self.kept, self.places, self.reasons = {}, {}, {}
        self.away = False

    def chains(self):
        if self.away:
            raise ports.NeutronUnavailable('away')
        kept = {name: ports.Rights(networks, self.places.get(name))
                for name, networks in self.kept.items()}
        return self.wanted, kept, self.reasons


class ChainsTest(testtools.TestCase):

    def setUp(self):
        super().setUp()
        self.useFixture(fixtures.FakeLogger())
        self.folder = None

    def record(self, host='host1'):
        return record.Record(self.folder, host)

    def keeper(self, switch, neutron):
        return chains.Chains(switch, neutron, self.record())

    def test_differences_are_set_and_removed(self):
        switch = Switch(NAMES[0], 'by-hand')
        neutron = Neutron(chain(NAMES[1]), chain(NAMES[2], 2))
        keeper = self.keeper(switch, neutron)
        keeper.run_once()
        self.assertEqual([('set', NAMES[1], 1), ('set', NAMES[2], 2),
                          ('remove', NAMES[0])], switch.calls)
        self.assertEqual({'by-hand', NAMES[1], NAMES[2]},
                         set(switch.chains))
        switch.calls.clear()
        keeper.run_once()
        self.assertEqual([], switch.calls)
        neutron.wanted[0] = chain(NAMES[1], 3)
        keeper.run_once()
        self.assertEqual([('set', NAMES[1], 3)], switch.calls)

    def test_a_switch_that_started_again_gets_its_chains_back(self):
        switch, neutron = Switch(), Neutron()
        keeper = self.keeper(switch, neutron)
        keeper.run_once()
        neutron.wanted.append(chain(NAMES[0]))
        keeper.run_once()
        self.assertNotIn('restored', switch.chains[NAMES[0]])
        switch.chains.clear()
        neutron.wanted.append(chain(NAMES[1]))
        keeper.run_once()
        self.assertTrue(switch.chains[NAMES[0]]['restored'])
        self.assertNotIn('restored', switch.chains[NAMES[1]])
        switch.calls.clear()
        keeper.run_once()
        self.assertEqual([], switch.calls)

    def test_packets_bypass_no_chain_after_a_start_of_agent_and_switch(self):
        switch = Switch(NAMES[1])
        neutron = Neutron(chain(NAMES[0]), chain(NAMES[1], 2))
        keeper = self.keeper(switch, neutron)
        neutron.away = True
        self.assertRaises(ports.NeutronUnavailable, keeper.restore)
        neutron.away = False
        # At a boot the switch takes no chain before it has a port.
        switch.refused = NAMES[0]
        keeper.restore()
        switch.refused = None
        keeper.restore()
        self.assertTrue(switch.chains[NAMES[0]]['restored'])
        # The switch has it: nothing bypasses a change.
        self.assertNotIn('restored', switch.chains[NAMES[1]])

    def keep(self):
        """Keep chains on disk from now on."""
        self.folder = self.useFixture(fixtures.TempDir()).path

    def test_a_new_agent_restores_what_a_new_switch_lost(self):
        """One is not ready, one refused, and one was removed meanwhile."""
        self.keep()
        entered = chain(NAMES[1]) | {'classifiers': [{'source_port': 'a'}]}
        neutron = Neutron(chain(NAMES[0]), entered, chain(NAMES[2]))
        self.keeper(Switch(), neutron).run_once()
        neutron.wanted, neutron.kept = [entered], {NAMES[0]: None}
        for _start in range(2):
            switch = Switch()
            switch.refused = NAMES[1]
            self.assertEqual({('vale0', 'a')},
                             self.keeper(switch, neutron).restore())
            self.assertEqual([chain(NAMES[0]) | {'restored': True}],
                             list(switch.chains.values()))

    def test_the_switch_has_what_a_new_agent_read(self):
        """It may have another definition than the last agent kept."""
        self.keep()
        switch, neutron = Switch(), Neutron(chain(NAMES[0]))
        self.keeper(switch, neutron).run_once()
        switch.chains[NAMES[0]] = chain(NAMES[0], 2)
        self.keeper(switch, neutron).run_once()
        self.assertEqual([chain(NAMES[0])], list(switch.chains.values()))

    def test_an_answer_that_is_missing_loses_no_chain(self):
        self.keep()
        neutron = Neutron(chain(NAMES[0]))
        self.keeper(Switch(), neutron).run_once()
        neutron.wanted, neutron.kept = [], {NAMES[0]: None}
        switch = Switch()
        keeper = self.keeper(switch, neutron)
        for away in (True, False):
            neutron.away = away
            try:
                keeper.run_once()
            except ports.NeutronUnavailable:
                pass
        self.assertEqual([NAMES[0]], list(switch.chains))

    def test_chains_that_cannot_be_kept(self):
        self.keep()
        switch, neutron = Switch(), Neutron(chain(NAMES[0]))
        path = pathlib.Path(self.folder, 'chains.json')
        for text in ('{', '[1]', '{}', '[' * 100_000, '{"chains": {}}'):
            path.write_text(text)
            self.assertEqual({}, self.record().load())
        good = chain('a') | {'segment': 7, 'nat': ['192.0.2.7/24'],
                             'classifiers': [{'source_port': None,
                                              'senders': ['2001:db8::1']}]}
        path.write_text(of_host1(good))
        self.assertEqual({'a': good}, self.record().load())
        # A copy of another host's disk.
        self.assertEqual({}, self.record('host2').load())
        # Of another release, or not ours: the agent could read none again.
        for part in ({'switch': 1}, {'chain': None}, {'hops': None},
                     {'segment': [7]}, {'nat': 1}, {'nat': None},
                     {'nat': ['x']}, {'nat': [7]}, {'classifiers': [1]},
                     {'classifiers': {}}, {'classifiers': [{'senders': 1}]},
                     {'classifiers': [{'senders': ['x']}]},
                     {'classifiers': [{'source_port': ['a']}]},
                     {'classifiers': [{'destination_port': {}}]},
                     {'timeout_ms': 'x'}, {'timeout_ms': 1 << 40}):
            path.write_text(of_host1(good, good | part))
            self.assertEqual({}, self.record().load(), part)
        path.unlink()
        self.assert_reads_no_other_file(path, of_host1(good))
        path.mkdir()
        keeper = self.keeper(switch, neutron)
        logged = self.useFixture(fixtures.FakeLogger())
        for _again in range(2):
            keeper.run_once()
        self.assertEqual([NAMES[0]], list(switch.chains))
        self.assertEqual(1, logged.output.count('are not kept'))
        path.rmdir()
        keeper.run_once()
        self.assertEqual({NAMES[0]: chain(NAMES[0])},
                         self.record().load())

    def assert_reads_no_other_file(self, path, text):
        other = path.with_name('other')
        other.write_text(text)
        path.symlink_to(other)
        self.assertEqual({}, self.record().load())
        path.unlink()
        os.mkfifo(path)
        self.assertEqual({}, self.record().load())
        path.unlink()
        path.write_text(text)
        with mock.patch.object(record, '_MAX_SIZE', len(text) - 1):
            self.assertEqual({}, self.record().load())
        with mock.patch.object(record, '_MAX_SIZE', len(text)):
            self.assertEqual(['a'], [*self.record().load()])
        path.unlink()

    def test_a_record_is_written_to_no_other_file(self):
        self.keep()
        folder = pathlib.Path(self.folder)
        folder.joinpath('other').write_text('mine')
        for make in (lambda new: new.symlink_to(folder / 'other'), os.mkfifo):
            make(folder / 'chains.json.new')
            self.record().save({'a': chain('a')})
            self.assertEqual('mine', folder.joinpath('other').read_text())
            self.assertEqual({'a': chain('a')},
                             self.record().load())

    def test_a_chain_that_is_not_ready_stays_as_it_is(self):
        switch, neutron = Switch(*NAMES[:2]), Neutron()
        neutron.kept = {NAMES[0]: None, NAMES[2]: []}
        self.keeper(switch, neutron).run_once()
        self.assertEqual([('remove', NAMES[1])], switch.calls)

    def test_the_reason_of_a_chain_that_is_not_ready_is_known(self):
        neutron = Neutron()
        keeper = self.keeper(Switch(), neutron)
        for reasons in ({NAMES[0]: 'not ready: no bound pair'}, {}):
            neutron.reasons = reasons
            keeper.run_once()
            self.assertEqual(reasons.get(NAMES[0]), keeper.reason(NAMES[0]))

    def test_a_chain_stays_within_what_its_hops_may_send_from(self):
        rights = ['2001:DB8::/64', '10.0.0.5/32', '192.0.2.7/24']
        within = {'nat': ['192.0.2.0/24'], 'classifiers': [
            {'senders': ['10.0.0.5/32', '2001:db8::/64']}, {}]}
        beyond = ({'nat': ['192.0.2.0/25']}, {'nat': ['0.0.0.0/0']},
                  {'classifiers': [{}, {'senders': ['10.0.0.6/32']}]})
        for state, stays in ((within, True), *((b, False) for b in beyond)):
            switch, neutron = Switch(), Neutron()
            switch.chains[NAMES[0]] = chain(NAMES[0]) | state
            neutron.kept = {NAMES[0]: rights}
            self.keeper(switch, neutron).run_once()
            self.assertEqual([] if stays else [('remove', NAMES[0])],
                             switch.calls)

    def test_a_chain_stays_in_the_segments_of_its_network(self):
        """Another network, of another project, may have its segment by now."""
        for places, stays in ((None, True), ({('vale0', 7)}, True),
                              ({('vale0', 8), ('vale1', 7)}, False),
                              (set(), False)):
            self.keep()
            there = chain(NAMES[0]) | {'segment': 7}
            neutron, switch = Neutron(there), Switch()
            self.keeper(switch, neutron).run_once()
            neutron.wanted, neutron.kept = [], {NAMES[0]: None}
            neutron.places = {NAMES[0]: places}
            # The switch has it, or lost it, with or without the agent.
            keeper = self.keeper(switch, neutron)
            keeper.run_once()
            self.assertEqual(stays, NAMES[0] in switch.chains, places)
            self.assertEqual(stays, bool(self.record().load()))
            for again in (keeper, self.keeper(switch, neutron)):
                switch.chains.clear()
                again.restore()
                self.assertEqual(stays, NAMES[0] in switch.chains, places)

    def test_a_record_of_an_earlier_agent_is_left_in_its_segment(self):
        self.keep()
        neutron = Neutron(chain(NAMES[0]) | {'segment': 7})
        self.keeper(Switch(), neutron).run_once()
        neutron.wanted, neutron.kept = [], {NAMES[0]: None}
        neutron.places = {NAMES[0]: {('vale0', 8)}}
        switch = Switch()
        self.keeper(switch, neutron).restore()
        self.assertEqual({}, switch.chains)

    def test_a_chain_that_moved_leaves_its_segment(self):
        """The switch refuses the new definition."""
        switch, neutron = Switch(), Neutron(chain(NAMES[0]) | {'segment': 7})
        keeper = self.keeper(switch, neutron)
        keeper.run_once()
        for moved in ({'segment': 8}, {'segment': 7, 'switch': 'vale1'}):
            neutron.wanted = [chain(NAMES[0]) | {'segment': 7}]
            keeper.run_once()
            neutron.wanted = [chain(NAMES[0]) | moved]
            switch.refused = NAMES[0]
            keeper.run_once()
            self.assertEqual({}, switch.chains)
            switch.refused = None

    def test_a_definition_that_no_one_replaces_loses_its_rights(self):
        wide = chain(NAMES[0]) | {'nat': ['192.0.2.0/24']}
        narrow = wide | {'nat': ['192.0.2.7/32']}
        # The switch refuses the new one, or another host does not have it.
        for refused in (NAMES[0], None):
            switch, neutron = Switch(), Neutron(narrow)
            switch.chains[NAMES[0]] = wide
            keeper = self.keeper(switch, neutron)
            switch.refused = refused
            keeper.run_once()
            if refused is None:
                self.assertEqual([('set', NAMES[0], 1)], switch.calls)
                switch.chains[NAMES[0]] = wide
                keeper.run_once()
            self.assertEqual([('set', NAMES[0], 1), ('remove', NAMES[0])],
                             switch.calls)
            switch.refused = None
            keeper.run_once()
            self.assertEqual([narrow], list(switch.chains.values()))

    def test_a_switch_that_lost_its_chains_gets_them_again(self):
        switch, neutron = Switch(), Neutron(chain(NAMES[0]))
        keeper = self.keeper(switch, neutron)
        keeper.run_once()
        switch.chains.clear()
        keeper.run_once()
        self.assertEqual([NAMES[0]], list(switch.chains))

    def test_only_chains_that_the_switch_lost_are_restored(self):
        switch, neutron = Switch(), Neutron(chain(NAMES[0]))
        keeper = self.keeper(switch, neutron)
        keeper.restore()
        self.assertEqual([NAMES[0]], list(switch.chains))
        switch.calls.clear()
        neutron.wanted.append(chain(NAMES[1]))
        keeper.restore()
        self.assertEqual([], switch.calls)
        switch.chains.clear()
        keeper.restore()
        self.assertEqual(NAMES[:2], sorted(switch.chains))
        switch.chains.clear()
        neutron.wanted.pop()
        keeper.restore()
        self.assertEqual(NAMES[:1], list(switch.chains))
        neutron.away = True
        keeper.restore()    # nothing is lost
        switch.chains.clear()
        self.assertRaises(ports.NeutronUnavailable, keeper.restore)

    def test_a_chain_that_is_not_ready_survives_a_restart_of_the_switch(self):
        claims = chain(NAMES[0]) | {'nat': ['192.0.2.7/32']}
        for rights, stays in ((None, True), (['192.0.2.7/32'], True),
                              (['192.0.2.8/32'], False)):
            switch, neutron = Switch(), Neutron(claims)
            keeper = self.keeper(switch, neutron)
            keeper.run_once()
            neutron.wanted, neutron.kept = [], {NAMES[0]: rights}
            switch.chains.clear()
            keeper.restore()
            keeper.restore()
            self.assertEqual([claims | {'restored': True}] if stays else [],
                             list(switch.chains.values()))
            self.assertEqual(2 if stays else 1, len(switch.calls))
            # It ends with its port chain.
            neutron.kept = {}
            keeper.run_once()
            self.assertEqual({}, switch.chains)
            switch.chains.clear()
            keeper.restore()
            self.assertEqual({}, switch.chains)

    def test_a_new_agent_knows_what_the_switch_had(self):
        """One chain is not ready, and of one the switch refuses a change."""
        switch = Switch(*NAMES[:2])
        for figures in switch.chains.values():
            figures.update(counters={}, hop_counters=[], live_pairs=[1],
                           is_changing=True, hosts=[], restored=True)
        changed = chain(NAMES[1], 2) | {
            'classifiers': [{'source_port': 'a'}]}
        neutron = Neutron(changed)
        neutron.kept = {NAMES[0]: None}
        keeper = self.keeper(switch, neutron)
        switch.refused = NAMES[1]
        keeper.run_once()
        self.assertEqual([('set', NAMES[1], 2)], switch.calls)
        switch.chains.clear()
        self.assertEqual({('vale0', 'a')}, keeper.restore())
        self.assertEqual([chain(NAMES[0]) | {'restored': True}],
                         list(switch.chains.values()))

    def test_a_definition_is_what_chain_set_takes(self):
        listed, taken = (contract.CONTRACT['$defs'][name]['properties']
                         for name in ('ChainInfo', 'ChainSet'))
        self.assertEqual(taken.keys() - {'restored'},
                         chains._definition(listed).keys())

    def test_chains_that_a_switch_had_come_before_others(self):
        """It has room for 64, and the first ones get it."""
        switch, neutron = Switch(), Neutron(chain(NAMES[2]))
        keeper = self.keeper(switch, neutron)
        keeper.run_once()
        neutron.wanted, neutron.kept = [chain(NAMES[1])], {NAMES[2]: None}
        keeper.run_once()
        switch.chains.clear()
        switch.calls.clear()
        neutron.wanted.insert(0, chain(NAMES[0]))
        keeper.restore()
        self.assertEqual([NAMES[1], NAMES[2], NAMES[0]],
                         [name for _, name, _ in switch.calls])

    def test_a_change_that_is_taken_back_is_not_refused_any_more(self):
        switch, neutron = Switch(), Neutron(chain(NAMES[0]))
        keeper = self.keeper(switch, neutron)
        keeper.run_once()
        neutron.wanted = [chain(NAMES[0], 2)]
        switch.refused = NAMES[0]
        keeper.run_once()
        neutron.wanted = [chain(NAMES[0])]
        keeper.run_once()
        # Neutron is not asked for chains without a reason.
        neutron.away = True
        self.assertEqual(set(), keeper.restore())

    def test_ports_whose_packets_enter_a_lost_chain_are_named(self):
        entered = chain(NAMES[0]) | {'segment': 7, 'classifiers': [
            {'source_port': 'a', 'destination_port': 'b'},
            {'destination_port': 'c'}, {}]}
        switch, neutron = Switch(), Neutron(entered, chain(NAMES[1]))
        keeper = self.keeper(switch, neutron)
        switch.refused = NAMES[0]
        # It is new: no packet has passed its hops.
        self.assertEqual(set(), keeper.restore())
        switch.refused = None
        self.assertEqual(set(), keeper.restore())
        switch.chains.clear()
        switch.refused = NAMES[0]
        logged = self.useFixture(fixtures.FakeLogger())
        for _again in range(3):
            self.assertEqual({('vale0', 'a'), ('vale0', 'c'), ('vale0', 7)},
                             keeper.restore())
        self.assertEqual([NAMES[1]], list(switch.chains))
        self.assertEqual([1, 1], [logged.output.count(text) for text in (
            'switch: no', 'was in force')])
        switch.refused = None
        self.assertEqual(set(), keeper.restore())
        self.assertTrue(switch.chains[NAMES[0]]['restored'])

    def test_chains_of_a_switch_without_a_port_are_no_errors(self):
        """So it is after each boot."""
        switch, neutron = Switch(), Neutron(chain(NAMES[0]))
        keeper = self.keeper(switch, neutron)
        keeper.run_once()
        switch.chains.clear()
        logged = self.useFixture(fixtures.FakeLogger())
        switch.refused, switch.reason = NAMES[0], (
            'chain vale0:x: no-such-switch: vale0: no such switch')
        keeper.restore()
        self.assertEqual('', logged.output)
        switch.reason = 'no'
        keeper.restore()
        self.assertEqual([1, 1], [logged.output.count(text) for text in (
            'switch: no', 'was in force')])

    def test_a_chain_that_was_refused_is_tried_before_ports_open(self):
        switch, neutron = Switch(), Neutron(chain(NAMES[0]))
        keeper = self.keeper(switch, neutron)
        switch.refused = NAMES[0]
        keeper.run_once()
        # By now the switch knows what the hop's port may use.
        switch.refused = None
        keeper.restore()
        self.assertEqual([NAMES[0]], list(switch.chains))
        neutron.wanted.clear()
        keeper.run_once()
        self.assertEqual({}, keeper._refused)

    def test_one_refused_chain_stops_no_other(self):
        switch = Switch()
        switch.refused = NAMES[0]
        neutron = Neutron(chain(NAMES[0]), chain(NAMES[1]))
        keeper = self.keeper(switch, neutron)
        keeper.run_once()
        self.assertEqual([NAMES[1]], list(switch.chains))
        # The switch may know later what the hop's port may use.
        switch.refused = None
        keeper.run_once()
        self.assertEqual([NAMES[1], NAMES[0]], list(switch.chains))

    def test_without_neutron_chains_stay(self):
        switch, neutron = Switch(NAMES[0]), Neutron()
        neutron.away = True
        keeper = self.keeper(switch, neutron)
        self.assertRaises(ports.NeutronUnavailable, keeper.run_once)
        self.assertEqual([], switch.calls)

    def test_a_new_switch_gets_its_chains_without_neutron(self):
        """Ports without port security forward already."""
        self.keep()
        switch, neutron = Switch(), Neutron(*map(chain, NAMES[:2]))
        keeper = self.keeper(switch, neutron)
        keeper.run_once()
        switch.chains.clear()
        switch.refused, neutron.away = NAMES[1], True
        for _look in range(2):
            self.assertRaises(ports.NeutronUnavailable, keeper.restore)
            self.assertEqual([chain(NAMES[0]) | {'restored': True}],
                             list(switch.chains.values()))
        # It does not know whether those of an earlier agent are right.
        switch.chains.clear()
        self.assertRaises(ports.NeutronUnavailable,
                          self.keeper(switch, neutron).restore)
        self.assertEqual({}, switch.chains)

    def test_a_new_switch_gets_no_definition_that_neutron_replaced(self):
        """Its hops may not send from some of the networks any more."""
        self.keep()
        wide = chain(NAMES[0]) | {'nat': ['192.0.2.0/24']}
        narrow = wide | {'nat': ['192.0.2.7/32']}
        switch, neutron = Switch(), Neutron(wide)
        self.keeper(switch, neutron).run_once()
        neutron.wanted = [narrow]
        switch.chains.clear()
        # At a boot the switch takes no chain before it has a port.
        switch.refused = NAMES[0]
        keeper = self.keeper(switch, neutron)
        keeper.restore()
        switch.refused, neutron.away = None, True
        self.assertRaises(ports.NeutronUnavailable, keeper.restore)
        self.assertEqual([narrow | {'restored': True}],
                         list(switch.chains.values()))

    def test_a_hint_ends_the_wait(self):
        switch, neutron = Switch(), Neutron()
        keeper = resync.ResyncLoop(
            'chains', self.keeper(switch, neutron).run_once, 600)
        keeper.start()
        neutron.wanted = [chain(NAMES[0])]
        keeper.trigger()
        self.assertTrue(switch.was_set.wait(60))
        keeper.stop()
        keeper.wait()
