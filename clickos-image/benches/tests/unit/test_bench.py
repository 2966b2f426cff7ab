# SPDX-License-Identifier: Apache-2.0
"""Traces, configurations, runs and the table of the comparison."""

import pathlib
import tempfile
import unittest

from click_bench import classes
from click_bench import configurations
from click_bench import measure
from click_bench import table
from click_bench import traces
from click_bench import vpp


class TracesTest(unittest.TestCase):

    def test_headers_are_right(self):
        for frame in (traces.first_flow(), traces.flow(123456)):
            self.assertEqual(64, len(frame))
            self.assertEqual(0, traces.checksum(frame[14:34]))

    def test_every_flow_is_another_one(self):
        keys = {frame[26:38] for frame in traces.flows(70_000)}
        self.assertEqual(70_000, len(keys))

    def test_routes_are_networks_and_the_same_every_time(self):
        found = traces.routes()
        self.assertEqual(1000, len(set(found)))
        self.assertEqual(found, traces.routes())
        for network, length in found:
            self.assertEqual(0, network & (1 << (32 - length)) - 1)


class ConfigurationsTest(unittest.TestCase):

    def test_each_counts_and_stops(self):
        found = {**configurations.all_of_them(), **classes.all_of_them()}
        for name, made in found.items():
            with self.subTest(name):
                self.assertIn('d :: Discard;', made.text)
                self.assertIn('wait $T, stop', made.text)
                self.assertLess(made.short_s, made.long_s)

    def test_every_class_has_a_peer(self):
        for name in classes.all_of_them():
            self.assertIn(name[0], classes.PEERS)

    def test_vpp_gets_the_routes_of_a_row(self):
        rows = classes.all_of_them()
        text = vpp.script('e1-ip6-1000')
        added = [line.split()[3] for line in text.splitlines()
                 if line.startswith('ip route add')]
        self.assertEqual(1000, len(added))
        for prefix in added:
            self.assertIn(prefix + ' fe80', rows['e1-ip6-1000'].text)

    def test_permuted_rules_are_the_same_rules(self):
        plain, permuted = (configurations.rules(100, order).split(',\n ')
                           for order in (None, 3))
        self.assertNotEqual(plain, permuted)
        self.assertEqual(plain[-1], permuted[-1])


class RunTest(unittest.TestCase):

    def engine(self, script):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        path = pathlib.Path(folder.name) / 'engine'
        path.write_text('#!/bin/sh\n' + script)
        path.chmod(0o755)
        return measure.Engine.parse('x=%s' % path)

    def compare(self, script):
        engine = self.engine(script)
        made = configurations.Configuration('', 1, 2)
        path = engine.path.parent / 'a.click'
        return measure.compare([engine], path, made, 2, 0)['x']

    def test_a_run_has_the_count_and_processor_time(self):
        engine = self.engine('i=0; while [ $i -lt 30000 ]; do i=$((i+1)); '
                             'done; echo $i')
        run = measure.run(engine, engine.path.parent / 'a.click', 1, 0)
        self.assertEqual(30000, run.packets)
        self.assertGreater(run.cpu_s, 0)

    def test_the_reason_of_a_failure_is_told(self):
        error = self.compare('echo "a.click:1:1: no" >&2; exit 1')
        self.assertEqual('a.click:1:1: no', str(error))

    def test_an_engine_that_counts_nothing_more_is_an_error(self):
        self.assertIn('counted 7 packets in 1 s', str(self.compare('echo 7')))

    def test_an_engine_that_hangs_is_killed(self):
        engine = self.engine('exec sleep 600')
        process = measure.subprocess.Popen(
            [engine.path], stdout=measure.subprocess.PIPE, text=True)
        measure.wait(process, 0.2)
        self.assertEqual(-measure.signal.SIGKILL, process.returncode)

    def test_what_is_no_program_is_refused(self):
        for text in ('x', '=/bin/true', 'x=/nowhere'):
            with self.assertRaisesRegex(ValueError, 'NAME=PATH'):
                measure.Engine.parse(text)


class TableTest(unittest.TestCase):

    def test_the_ratio_is_to_the_fastest_other(self):
        times = {'clickos': 10.0, 'a': 30.0, 'b': 20.0,
                 'c': measure.EngineError('no')}
        self.assertEqual(2.0, table.ratio(times, 'clickos'))
        self.assertIsNone(table.ratio({'clickos': 1.0}, 'clickos'))

    def test_the_summary_names_what_is_too_slow(self):
        results = {'one': {'clickos': 10.0, 'a': 40.0},
                   'two': {'clickos': 10.0, 'a': 10.0}}
        text = table.summary(results, 'clickos')
        self.assertIn('geometric mean 2.00', text)
        self.assertIn('below 1.5: two 1.00', text)
        self.assertEqual('', table.summary({}, 'clickos'))

    def test_an_error_is_shown_under_its_line(self):
        times = {'clickos': 10.0, 'a': measure.EngineError('bad element')}
        row = table.row('one', times, 'clickos', 5.0)
        self.assertIn('10.0    2.0', row)
        self.assertTrue(row.endswith('\n    a: bad element'))
