# SPDX-License-Identifier: Apache-2.0
"""openstack clickos state list | restore, and verdicts that come late."""

import base64
from unittest import mock

from clickos_client import document
from clickos_client import limits
from clickos_client import outcomes
from osc_lib import exceptions

from clickos_api import errors
from clickos_api.outside import rpc
from clickos_osc.v1 import handler
from clickos_osc.v1 import state
from tests.unit.clickos_osc import base


class SaveTest(base.CommandTestCase):
    """User data of a guest that runs."""

    TEXT = 'fw :: IPFilter(deny all); A($PORT0_IP, $PORT0_GW);\n'

    def setUp(self):
        super().setUp()
        self.run_as('define($PORT0_GW 10.0.1.1,\n       $PORT0_IP 10.0.1.5);'
                    '\n# 1 "user_data"\n' + self.TEXT)

    def run_as(self, text):
        """Let the guest run a configuration."""
        self.agent.guests[self.server_id]['config'] = text

    def saved(self, *names):
        """Save; return what Nova's driver reads of it."""
        _, text = self.run_command(state.SaveState, *names)
        self.assertTrue(text.isascii())
        return document.parse(base64.b64encode(text.encode()).decode())

    def test_the_next_server_begins_with_configuration_and_writes(self):
        self.put('allow icmp')
        self.put('allow \x1b all')
        for names in (['my-fw'], ['--vnf', self.vnf_id]):
            self.assertEqual(
                document.Configuration(
                    self.TEXT, 'user_data',
                    (('fw.config', 'allow \x1b all'),)), self.saved(*names))

    def test_a_replaced_configuration_keeps_its_name(self):
        self.replace(self.TEXT, config_name='r.click')
        self.run_as(self.TEXT)
        self.assertEqual(document.Configuration(self.TEXT, 'r.click'),
                         self.saved('my-fw'))

    def test_more_than_user_data_may_have(self):
        self.run_as('/*' + 'x' * limits.USER_DATA_BYTES + '*/')
        with self.assertRaisesRegex(exceptions.CommandError,
                                    f'at most {limits.USER_DATA_BYTES}'):
            self.saved('my-fw')

    def test_a_change_between_the_two_reads(self):
        read = type(self.manager.clickos).read

        def changing(client, *arguments):
            self.put('allow all')
            return read(client, *arguments)
        with mock.patch.object(type(self.manager.clickos), 'read',
                               autospec=True, side_effect=changing), \
                self.assertRaisesRegex(exceptions.CommandError, 'try again'):
            self.saved('my-fw')


class StateTest(base.CommandTestCase):
    """Changes and revisions of a guest."""

    def test_list_and_restore(self):
        self.put('allow icmp')
        self.put('bad')
        self.put('deny all')
        (columns, rows), _ = self.run_command(state.ListState, 'my-fw')
        self.assertEqual(('Number', 'Time', 'Status', 'Revision', 'Error'),
                         columns)
        self.assertEqual(
            [('applied', 2, ''), ('refused', '', 'fw.config: bad value'),
             ('applied', 1, '')], [row[2:] for row in rows])
        _, text = self.run_command(state.RestoreState, '--vnf', self.vnf_id,
                                   '1')
        self.assertIn('revision 1 is in force again, as revision 3', text)
        self.assertEqual('allow icmp',
                         self.agent.guests[self.server_id]['fw.config'])
        with self.assertRaisesRegex(exceptions.CommandError,
                                    'revision 9: is not kept'):
            self.run_command(state.RestoreState, 'my-fw', '9')

    def silence(self):
        """Let no agent answer a write."""
        self.use(base.base.fixtures.MockPatchObject(
            rpc.Agent, 'handler_write', autospec=True,
            side_effect=errors.AgentTimeout('nothing heard')))

    def late(self, status, **more):
        """Let a change get a verdict."""
        def settle(client, guest, number):
            return {'number': number, 'status': status, **more}
        return mock.patch.object(type(self.manager.clickos), 'change',
                                 autospec=True, side_effect=settle)

    def test_a_write_waits_for_the_guests_verdict(self):
        self.silence()
        with self.late('applied', revision=7):
            _, text = self.run_command(handler.WriteHandler, 'my-fw',
                                       'fw.config', 'allow')
        self.assertIn('accepted, revision 7', text)

    def test_a_late_refusal_is_the_guests_own(self):
        self.silence()
        for status in outcomes.TEXTS:
            with self.late(status, error={'code': 'handler-error',
                                          'message': 'fw.config: why'}), \
                    self.assertRaisesRegex(exceptions.CommandError,
                                           'fw.config: why'):
                self.run_command(handler.WriteHandler, 'my-fw', 'fw.config',
                                 'x')

    def test_patience_ends(self):
        self.silence()
        self.manager.clickos._patience_s = 0.1
        with self.late('pending'), self.assertRaisesRegex(
                exceptions.CommandError, outcomes.message('no-verdict')):
            self.run_command(handler.WriteHandler, 'my-fw', 'fw.config', 'x')
