# SPDX-License-Identifier: Apache-2.0
"""openstack clickos vnf list | heal | scale | terminate | retry | delete."""

from keystoneauth1 import session as ks_session
from osc_lib import exceptions

from clickos_osc.v1 import lifecycle
from clickos_osc.v1 import vnf
from clickos_osc import waiting
from tests.unit.clickos_osc import base
from tests.unit.clickos_osc import fake_tacker

_HOSTILE = 'a/b ü\x1b[2J' + 'x' * 300


class TackerTestCase(base.CommandTestCase):
    """A Tacker that keeps what the commands do."""

    def setUp(self):
        super().setUp()
        self.tacker = fake_tacker.FakeTacker()
        self.addCleanup(self.tacker.close)
        self.manager.session = ks_session.Session(base.Auth(
            {'nfv-orchestration': self.tacker.url}, self.token))
        self.pauses = []
        self.use(base.base.fixtures.MockPatchObject(
            waiting, 'pause', side_effect=lambda: self.pauses.append(1)))

    def refused(self, words, command, *arguments):
        with self.assertRaisesRegex(exceptions.CommandError, words):
            self.run_whole(command, *arguments)


class TargetsTest(TackerTestCase):
    """Commands on several VNFs."""

    def setUp(self):
        super().setUp()
        self.edge = self.tacker.add_vnf('edge', guests=2)
        self.core = self.tacker.add_vnf('core')

    def test_heal_of_several_waits_for_all(self):
        status, shown, log = self.run_whole(
            lifecycle.HealVnf, 'edge', self.core['id'], 'edge', '--wait',
            '-f', 'json')
        self.assertEqual(0, status)
        self.assertEqual(2, shown.count('COMPLETED'))
        self.assertIn('edge: HEAL STARTING\n', log)
        self.assertEqual([('POST', 'heal')] * 2, self.tacker.verbs())

    def test_without_wait_it_is_accepted(self):
        status, shown, log = self.run_whole(
            lifecycle.TerminateVnf, 'edge', '-f', 'value', '-c', 'State')
        self.assertEqual((0, 'ACCEPTED\n', ''), (status, shown, log))
        self.assertEqual('FORCEFUL', self.tacker.calls[0][2][
            'terminationType'])

    def test_formats(self):
        for form in ('table', 'yaml', 'json', 'csv', 'value'):
            status, shown, _ = self.run_whole(
                lifecycle.HealVnf, 'edge', '-f', form)
            self.assertEqual(0, status)
            self.assertIn('edge', shown)

    def test_heal_of_a_guest_by_its_short_name(self):
        self.run_whole(lifecycle.HealVnf, 'edge', '--vnfc', 'VDU1-1',
                       '--cause', 'crash')
        self.assertEqual({'cause': 'crash', 'vnfcInstanceId': ['vnfc-1']},
                         self.tacker.calls[0][2])
        status, shown, _ = self.run_whole(
            lifecycle.HealVnf, 'edge', '--vnfc', 'VDU9-0', '-f', 'value')
        self.assertEqual(1, status)
        self.assertIn('has no guest VDU9-0', shown)

    def test_a_failure_has_reason_and_advice(self):
        self.tacker.states = ['PROCESSING', 'FAILED_TEMP']
        self.tacker.operations.clear()
        self.tacker.operate(self.edge['id'], 'HEAL')
        self.tacker.operations[0]['error'] = {'detail': 'no \x1b room'}
        status, shown, _ = self.run_whole(
            lifecycle.RetryVnf, 'edge', '-f', 'value')
        self.assertEqual(1, status)
        self.assertIn('no operation waits for a retry', shown)
        status, shown, _ = self.run_whole(
            lifecycle.HealVnf, 'edge', '--wait', '-f', 'value')
        self.assertEqual(1, status)
        self.assertIn('FAILED_TEMP', shown)
        self.assertIn('vnf retry', shown)

    def test_retry(self):
        self.tacker.operate(self.edge['id'], 'HEAL', ['FAILED_TEMP'])
        status, shown, _ = self.run_whole(
            lifecycle.RetryVnf, 'edge', '--wait', '-f', 'value')
        self.assertEqual(0, status, shown)
        self.assertIn('HEAL COMPLETED', shown)

    def test_a_refusal_does_not_stop_the_others(self):
        self.tacker.refused['POST', f'{self.edge["id"]}/heal'] = (
            409, {'detail': 'busy\x1b'})
        status, shown, _ = self.run_whole(
            lifecycle.HealVnf, 'edge', 'core', '--wait', '-f', 'value')
        self.assertEqual(1, status)
        self.assertIn(r'REFUSED busy\x1b (HTTP 409)', shown)
        self.assertIn('core HEAL COMPLETED', shown)

    def test_names_are_looked_up_before_anything_is_done(self):
        self.refused('No VNF instance found for x', lifecycle.HealVnf,
                     'edge', 'x')
        self.tacker.add_vnf('edge')
        self.refused('More than one .*: use|use an ID: ', lifecycle.HealVnf,
                     'edge')
        self.assertEqual([], self.tacker.calls)

    def test_hostile_names(self):
        self.tacker.add_vnf(_HOSTILE)
        status, shown, log = self.run_whole(
            lifecycle.HealVnf, _HOSTILE, '--wait', '-f', 'value')
        self.assertEqual(0, status)
        self.assertNotIn('\x1b', shown + log)
        self.assertIn(r'a/b ü\x1b[2J', shown)

    def test_delete_wants_no_guest(self):
        status, shown, _ = self.run_whole(
            lifecycle.DeleteVnf, 'edge', '-f', 'value')
        self.assertEqual(1, status)
        self.assertIn('has guests; ', shown)
        self.core['instantiationState'] = 'NOT_INSTANTIATED'
        status, shown, _ = self.run_whole(
            lifecycle.DeleteVnf, 'core', '-f', 'value')
        self.assertEqual(0, status)
        self.assertEqual([self.edge['id']], list(self.tacker.vnfs))

    def test_force_gives_up_terminates_and_deletes(self):
        self.tacker.operate(self.edge['id'], 'HEAL', ['FAILED_TEMP'])
        status, shown, _ = self.run_whole(
            lifecycle.DeleteVnf, 'edge', 'core', '--force', '-f', 'value')
        self.assertEqual(0, status, shown)
        self.assertEqual({}, self.tacker.vnfs)
        self.assertEqual(['fail', 'terminate', 'terminate', '', ''],
                         [end for _, end in self.tacker.verbs()])

    def test_a_refusal_at_the_end_does_not_stop_the_others(self):
        self.tacker.refused['DELETE', self.edge['id']] = (
            409, {'detail': 'busy'})
        status, shown, _ = self.run_whole(
            lifecycle.DeleteVnf, 'edge', 'core', '--force', '-f', 'value')
        self.assertEqual(1, status)
        self.assertIn('edge DELETE REFUSED busy (HTTP 409)', shown)
        self.assertEqual([self.edge['id']], list(self.tacker.vnfs))

    def test_a_termination_that_fails_keeps_the_vnf(self):
        self.tacker.states = ['PROCESSING', 'FAILED_TEMP']
        status, shown, _ = self.run_whole(
            lifecycle.DeleteVnf, 'edge', '--force', '-f', 'value')
        self.assertEqual(1, status)
        self.assertIn(self.edge['id'], self.tacker.vnfs)

    def test_the_limit_of_wait(self):
        self.tacker.states = ['PROCESSING']
        self.refused('not over after 0.001 s; in Tacker goes on: edge: HEAL',
                     lifecycle.HealVnf, 'edge', '--wait', '--timeout',
                     '0.001')

    def test_ctrl_c_says_what_goes_on(self):
        self.tacker.states = ['PROCESSING']
        waiting.pause.side_effect = KeyboardInterrupt
        status, _, log = self.run_whole(lifecycle.HealVnf, 'edge', 'core',
                                        '--wait')
        self.assertEqual(waiting.INTERRUPTED, status)
        self.assertIn('in Tacker goes on: edge: HEAL, core: HEAL', log)


class ListTest(TackerTestCase):

    def test_list(self):
        edge = self.tacker.add_vnf('edge\x1b')
        network = self.manager.sdk_connection.network
        network.add_port('p', 's', 'm', f'clickos-vnf:{edge["id"]}')
        network.add_port('q', 's', 'm', f'clickos-vnf:{edge["id"]}', 'other')
        status, shown, _ = self.run_whole(vnf.ListVnf, '-f', 'value')
        self.assertEqual(
            (0, f'{edge["id"]} edge\\x1b active  1 [\'10.0.0.9\']\n'),
            (status, shown))


class ScaleTest(TackerTestCase):
    """A VNF at level 1 of the aspect capacity."""

    def setUp(self):
        super().setUp()
        self.info = self.tacker.add_vnf('edge')['instantiatedVnfInfo']

    def scale(self, level, *options):
        return self.run_whole(lifecycle.ScaleVnf, 'edge', '--level',
                              str(level), '-f', 'value', *options)[1]

    def asked(self):
        """Return type and steps of each request."""
        return [(body['type'], body['aspectId'], body['numberOfSteps'])
                for _, _, body in self.tacker.calls]

    def test_out(self):
        shown = self.scale(3, '--aspect', 'capacity', '--wait')
        self.assertTrue(shown.endswith('capacity\n1\n3\nCOMPLETED\n'), shown)
        self.assertEqual([('SCALE_OUT', 'capacity', 2)], self.asked())

    def test_in(self):
        self.assertTrue(self.scale(0).endswith('1\n0\nACCEPTED\n'))
        self.assertEqual([('SCALE_IN', 'capacity', 1)], self.asked())

    def test_nothing_to_do(self):
        self.assertIn('nothing to do', self.scale(1))
        self.assertEqual([], self.asked())

    def test_a_failure_has_its_reason(self):
        self.tacker.states = ['FAILED_TEMP']
        self.refused('edge: SCALE FAILED_TEMP: .*vnf retry',
                     lifecycle.ScaleVnf, 'edge', '--level', '2', '--wait')

    def test_aspects(self):
        def refused(words, *arguments):
            self.refused(words, lifecycle.ScaleVnf, 'edge', *arguments)
        refused('no scaling aspect x; aspects that scale: capacity',
                '--level', '2', '--aspect', 'x')
        refused('--level -1: expected 0', '--level=-1')
        self.info['scaleStatus'].append({'aspectId': 'b', 'scaleLevel': 0})
        refused('--aspect is needed; .*: capacity, b', '--level', '2')
        self.info['scaleStatus'] = []
        refused('--aspect is needed; .*: none', '--level', '2')
