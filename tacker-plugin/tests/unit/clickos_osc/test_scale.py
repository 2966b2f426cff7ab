# SPDX-License-Identifier: Apache-2.0
"""openstack clickos vnf scale."""

from osc_lib import exceptions

from clickos_osc.v1 import scale
from tests.unit.clickos_osc import base


class ScaleTest(base.CommandTestCase):
    """A VNF at level 1 of the aspect capacity."""

    def setUp(self):
        super().setUp()
        body = self.cloud.vnfs[self.vnf_id][1]
        body['vnfInstanceName'] = 'edge'
        self.info = body['instantiatedVnfInfo']
        self.info['scaleStatus'] = [
            {'aspectId': 'capacity', 'scaleLevel': 1}]
        self.states = iter(('PROCESSING', 'COMPLETED'))
        self.use(base.base.fixtures.MockPatchObject(
            scale, '_pause', autospec=True, side_effect=self.go_on))
        self.operation = {
            'id': 'op', 'vnfInstanceId': self.vnf_id, 'operation': 'SCALE',
            'operationState': 'STARTING', 'startTime': '2026-11-24T01:00:00Z'}
        self.cloud.operations = [self.operation]

    def go_on(self):
        self.operation['operationState'] = next(self.states)

    def scale(self, level, *options):
        return self.run_command(scale.ScaleVnf, 'edge', '--level', str(level),
                                *options)[1]

    def refused(self, words, *arguments):
        with self.assertRaisesRegex(exceptions.CommandError, words):
            self.scale(*arguments)

    def asked(self):
        """Return type and steps of each request."""
        return [(body['type'], body['aspectId'], body['numberOfSteps'])
                for _, body in self.cloud.scalings]

    def test_out(self):
        self.assertEqual('edge: capacity: level 1 to 3: COMPLETED\n',
                         self.scale(3, '--aspect', 'capacity'))
        self.assertEqual([('SCALE_OUT', 'capacity', 2)], self.asked())

    def test_in(self):
        self.assertEqual('edge: capacity: level 1 to 0: accepted\n',
                         self.scale(0, '--no-wait'))
        self.assertEqual([('SCALE_IN', 'capacity', 1)], self.asked())

    def test_nothing_to_do(self):
        self.assertIn('nothing to do', self.scale(1))
        self.assertEqual([], self.asked())

    def test_tackers_refusal(self):
        self.refused(r'can not scale\\x1b_out \(HTTP 400\)', 9)

    def test_a_failure_has_its_reason(self):
        self.states = iter(('FAILED_TEMP',))
        self.operation['error'] = {'detail': 'no room'}
        self.refused('SCALE FAILED_TEMP: no room; operation op: .*rollback',
                     2)

    def test_aspects(self):
        self.refused('no scaling aspect x; aspects that scale: capacity', 2,
                     '--aspect', 'x')
        self.refused('--level -1: expected 0', -1)
        self.info['scaleStatus'].append({'aspectId': 'b', 'scaleLevel': 0})
        self.refused('--aspect is needed; .*: capacity, b', 2)
        self.info['scaleStatus'] = []
        self.refused('--aspect is needed; .*: none', 2)

    def test_the_operation_that_tacker_names(self):
        other = {**self.operation, 'id': 'later', 'operationState': 'FAILED',
                 'startTime': '2026-11-24T02:00:00Z'}
        self.cloud.operations.append(other)
        source = scale.tacker.Tacker(self.manager)
        self.states = iter(('COMPLETED',))
        self.assertEqual('COMPLETED', scale._ended(source, self.vnf_id, 'op'))
        with self.assertRaisesRegex(exceptions.CommandError, 'no operation'):
            scale._ended(source, self.vnf_id, 'x')
