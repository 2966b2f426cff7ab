# SPDX-License-Identifier: Apache-2.0
"""Uplinks of the Xen host, and what of its guests is left, without a host."""

import json
from unittest import mock

from clickos_lab import errors
from clickos_lab.host import domains
from clickos_lab.host import uplinks
from clickos_lab import shell
from clickos_lab.xen import cable
from clickos_lab.xen import compute
from tests.unit import base


class UplinksTest(base.TestCase):
    """A switch that keeps its ports in a dict stands for both."""

    def setUp(self):
        super().setUp()
        self.running = True
        self.outside, self.inside = {}, {}
        for target, name, instead in (
                (compute.XenCompute, 'running', lambda _: self.running),
                (compute.XenCompute, 'run', lambda _, __, *words:
                 self._switch(self.inside, *words)),
                (shell, 'output', lambda words: self._switch(
                    self.outside, *words[2:]))):
            patch = mock.patch.object(target, name, instead)
            patch.start()
            self.addCleanup(patch.stop)
        self.uplinks = uplinks.Uplinks(self.state)

    def _switch(self, ports, verb, *words):
        if verb == 'attach':
            flags = dict(w[2:].split('=') for w in words[1:])
            ports[words[0].partition(':')[2]] = flags
        if verb == 'detach':
            ports.pop(words[0].partition(':')[2], None)
        return json.dumps([{'port': name, 'segment': int(port['segment'])}
                           for name, port in ports.items()])

    def machine(self, segment):
        self.outside[f'machine{segment}'] = {'segment': segment}
        self.uplinks.reach(segment)

    def carried(self, ports):
        return {port['segment']: port['ifname']
                for name, port in ports.items() if name.startswith('uplink')}

    def test_each_network_has_a_cable_of_its_own_on_both_sides(self):
        for segment in (101, 102, 101):
            self.machine(segment)
        taps = compute.XenCompute(self.state).taps()
        self.assertEqual({'101': taps[0], '102': taps[1]},
                         self.carried(self.outside))
        self.assertEqual({'101': 'eth1', '102': 'eth2'},
                         self.carried(self.inside))

    def test_the_last_card_is_for_tunnels(self):
        for segment in (101, 102, 103, 104):
            self.machine(segment)
        taps = compute.XenCompute(self.state).taps()
        self.assertNotIn(taps[-1], self.carried(self.outside).values())
        self.assertNotIn(cable.INTERFACE, self.carried(self.inside).values())

    def test_a_cable_goes_over_from_a_network_without_machines(self):
        for segment in (101, 102, 103, 104):
            self.machine(segment)
        with self.assertRaisesRegex(errors.LabError, '4 uplinks'):
            self.machine(105)
        del self.outside['machine102'], self.outside['machine105']
        self.machine(106)
        for ports in (self.outside, self.inside):
            self.assertEqual({'101', '103', '104', '106'},
                             set(self.carried(ports)))

    def test_without_a_xen_host_nothing_happens(self):
        self.running = False
        self.machine(101)
        self.assertEqual({}, self.carried(self.outside))


class LeftoversTest(base.TestCase):

    def leftovers(self, looked, guests=(), ports=()):
        answers = {'cosmos': {'guests': list(guests)},
                   'vale-ctl': [{'port': p, 'kind': k} for p, k in ports]}
        known = domains.Domains(self.state)
        known._xen = mock.create_autospec(compute.XenCompute, instance=True)
        known._xen.run.side_effect = \
            lambda program, *_: json.dumps(answers[program])
        known._xen.dom0 = mock.Mock(**{'check.return_value': looked})
        return known.leftovers('gone')

    def test_another_guest_and_the_uplinks_are_not_left_over(self):
        self.assertEqual([], self.leftovers(
            'domain 7\n/local/domain 7\n',
            [{'uuid': 'other', 'domid': 7, 'vifs': [{'port': 'p7'}]}],
            [('p7', 'xen'), ('uplink0', 'veth')]))

    def test_each_remainder_is_named(self):
        self.assertEqual(
            ['guest gone', 'domain 5', '/local/domain/0/backend/vale 5',
             'switch port p5'],
            self.leftovers(
                'domain 5\n/local/domain/0/backend/vale 5\n',
                [{'uuid': 'gone', 'domid': 5, 'vifs': [{'port': 'p5'}]}],
                [('p5', 'xen')]))
