# SPDX-License-Identifier: Apache-2.0
"""What the demonstration makes of the tools' output."""

import contextlib
import io

from clickos_lab.demo import usage
from clickos_lab import errors
from clickos_lab import figures
from clickos_lab.host import endpoint
from clickos_lab.host import target
from tests.unit import base


class FiguresTest(base.TestCase):

    def test_an_expectation_that_is_not_met_counts_and_shows(self):
        table = figures.Figures()
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            table.measured('rate', '5 MB/s')
            table.expect('answered', '50/50', True)
            self.assertEqual(0, table.failed)
            table.expect('lost', '1/50', False)
            table.print()
        self.assertEqual(1, table.failed)
        rows = [line.split() for line in printed.getvalue().splitlines()]
        self.assertIn(['lost', '1/50', 'FAILED'], rows)
        self.assertIn(['answered', '50/50', 'ok'], rows)
        self.assertIn(['rate', '5', 'MB/s'], rows)


class UsageTest(base.TestCase):

    def usage(self, host):
        return usage.text(self.state, host, 'a-vnf', 'demo7-client',
                          '10.9.8.7')

    def test_on_each_host_names_what_is_up(self):
        for host in (target.PROCESS, target.XEN):
            text = self.usage(host)
            for wanted in (f'. {self.state.root}/openrc-demo',
                           '--vnf a-vnf fw.config',
                           'ip netns exec demo7-client ping -c 3 10.9.8.7'):
                self.assertIn(wanted, text)

    def test_names_the_programs_where_they_run(self):
        self.assertIn(f'{self.state.binary("cosmos")} --socket ',
                      self.usage(target.PROCESS))
        self.assertIn("xen run --host compute '/opt/clickos/cosmos ",
                      self.usage(target.XEN))


class EndpointTest(base.TestCase):

    def test_names(self):
        for name in ('', 'x' * 16, 'Upper', 'a/b', '../etc', 'a b'):
            with self.assertRaises(errors.LabError):
                endpoint.Endpoint(self.state, name)

    def test_interface_names_fit_and_differ(self):
        outer = {endpoint.Endpoint(self.state, f'machine-{n}').outer
                 for n in range(100)}
        self.assertEqual(100, len(outer))
        self.assertTrue(all(len(name) <= 15 for name in outer))
