# SPDX-License-Identifier: Apache-2.0
"""openstack clickos handler watch."""

import json
from unittest import mock

from osc_lib import exceptions

from clickos_osc.v1 import watch
from tests.unit.clickos_osc import base

NAMES = ('my-fw', 'c.count', 'fw.config')


class WatchHandlerTest(base.CommandTestCase):

    def setUp(self):
        super().setUp()
        self.values = self.agent.guests[self.server_id]
        self.values['c.count'] = '7\n'

    def watch(self, *arguments, rounds=({},)):
        """Watch while the values change; return the lines."""
        changes = iter(rounds)

        def pause(seconds):
            self.values.update(next(changes))

        with mock.patch.object(watch, '_pause', autospec=True,
                               side_effect=pause):
            return self.run_command(
                watch.WatchHandler, '--count', str(len(rounds) + 1),
                *arguments)[1].splitlines()

    def test_changes_only(self):
        lines = self.watch(*NAMES, rounds=(
            {}, {'c.count': '8\n'}, {'fw.config': 'a\x1b\nb'}))
        self.assertEqual(
            [['c.count', '7'], ['fw.config', 'deny all'], ['c.count', '8'],
             ['fw.config', 'a\\x1b\\nb']],
            [line.split('\t')[1:] for line in lines])
        self.assertRegex(lines[0], r'\A\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ\t')

    def test_all_guests_and_a_parameter(self):
        self.values['r.lookup'] = 'to '
        self.assertEqual(
            [['VDU1-0 r.lookup ::1', 'to ::1'],
             ['VDU1-0 r.lookup ::1', 'by ::1']],
            [line.split('\t')[1:] for line in self.watch(
                '--vnf', '--all', self.vnf_id, 'r.lookup', '::1',
                rounds=({'r.lookup': 'by '},))])

    def test_json(self):
        (first, second) = self.watch('-f', 'json', *NAMES[:2],
                                     rounds=({'c.count': '8'},))
        self.assertEqual(('c.count', '7\n'), (
            json.loads(first)['handler'], json.loads(first)['value']))
        self.assertEqual('8', json.loads(second)['value'])

    def test_a_refusal_ends_it(self):
        with self.assertRaisesRegex(exceptions.CommandError, 'no-such'):
            self.watch('my-fw', 'c.nothing')

    def test_bad_options(self):
        for options, words in ((('--interval', '0'), 'between'),
                               (('--interval', 'nan'), 'between'),
                               (('--count', '0'), '1 or more')):
            with self.assertRaisesRegex(exceptions.CommandError, words):
                self.run_command(watch.WatchHandler, *NAMES, *options)

    def test_ctrl_c_is_no_failure(self):
        with mock.patch.object(watch, '_pause', autospec=True,
                               side_effect=KeyboardInterrupt):
            app = base.types.SimpleNamespace(client_manager=self.manager,
                                             stdout=base.io.StringIO())
            command = watch.WatchHandler(app, base.argparse.Namespace())
            self.assertEqual(0, command.run(command.get_parser('x')
                                            .parse_args(NAMES)))
