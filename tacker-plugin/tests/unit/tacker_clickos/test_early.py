# SPDX-License-Identifier: Apache-2.0
"""The filter refuses operations early, and explains failed ones."""

import json

from tacker.db.db_sqlalchemy import models
from tacker import objects
from tacker.vnflcm import utils as vnflcm_utils
import webob
import webob.dec

from tacker_clickos import api_filter
from tacker_clickos import chained
from tacker_clickos import exception
from tacker_clickos import infra_driver
from tests.unit.tacker_clickos import base
from tests.unit.tacker_clickos import database

_VNF = '/vnf_instances/' + base.VNF_ID
_OPERATION = '/vnf_lcm_op_occs/' + base.VNF_ID


class EarlyTestCase(database.DatabaseTestCase):
    """With a filter before an application that answers as Tacker."""

    def setUp(self):
        super().setUp()
        base.build_package(self.package)
        self.patch(vnflcm_utils, 'get_vnf_package_path',
                   return_value=str(self.package))
        self.patch(vnflcm_utils, 'get_vim',
                   return_value={'access_info': dict(base.ACCESS)})
        self.reached, self.status, self.answer = [], 202, None
        self.patch(api_filter.owned, 'require')
        self.patch(api_filter.owned, 'require_vims')

    def send(self, path, body=None, method='POST'):
        """Send a request; return (status, JSON object of the answer)."""
        @webob.dec.wsgify
        def tacker(request):
            self.reached.append(request.path_info)
            self.on_request()
            return webob.Response(status=self.status,
                                  json_body=self.answer or {})
        request = webob.Request.blank(path, method=method)
        request.environ['tacker.context'] = self.context
        if body is not None:
            request.body = json.dumps(body).encode()
        response = request.get_response(
            api_filter.factory({}, api='lifecycle')(tacker))
        return response.status_int, response.json_body

    def on_request(self):
        """Do what Tacker does."""

    def assertRefused(self, status, reason, *request):
        code, body = self.send(*request)
        self.assertEqual(status, code)
        self.assertIn(reason, body['detail'])
        self.assertEqual([], self.reached)

    def assertPasses(self, *request):
        self.assertEqual(202, self.send(*request)[0])
        self.assertEqual(1, len(self.reached))


class InstantiateTest(EarlyTestCase):

    def setUp(self):
        super().setUp()
        self.make_vnf(instantiation_state='NOT_INSTANTIATED')

    def body(self, **properties):
        return {'flavourId': 'simple', 'additionalParams': {
            'clickos_properties': properties}}

    def test_a_bad_value_is_named_with_its_bound(self):
        path = _VNF + '/instantiate'
        self.assertRefused(400, 'property rules: ', path,
                           self.body(rules=['nonsense']))
        self.assertRefused(400, 'property no_such: this VNF has only: ', path,
                           self.body(no_such=1))

    def test_good_values_pass(self):
        self.assertPasses(_VNF + '/instantiate', self.body(
            rules=['allow icmp']))

    def test_a_package_on_another_host_is_tackers(self):
        vnflcm_utils.get_vnf_package_path.return_value = str(
            self.package / 'nowhere')
        self.assertPasses(_VNF + '/instantiate', self.body(no_such=1))


class UpdateTest(EarlyTestCase):

    def setUp(self):
        super().setUp()
        self.make_vnf()

    def send_rules(self, rules, **more):
        return self.send(_VNF, {'metadata': {'clickos_properties': {
            'rules': rules}}, **more}, 'PATCH')

    def test_a_bad_value_is_refused_at_once(self):
        for sent in ({'rules': ['permit all']}, '{"rules": ["permit all"]}'):
            self.assertRefused(
                400, "property rules: rule 0: must start with allow", _VNF,
                {'metadata': {'clickos_properties': sent}}, 'PATCH')
        self.assertRefused(400, 'is not JSON', _VNF, {'metadata': {
            'clickos_properties': '{'}}, 'PATCH')

    def test_others_reach_tacker(self):
        self.assertEqual(202, self.send_rules(['deny all'])[0])
        # The values of another package.
        self.patch(api_filter, '_take_package')
        self.assertEqual(202, self.send_rules(['x'], vnfdId='d')[0])
        vnf = objects.VnfInstance.get_by_id(self.context, base.VNF_ID)
        vnf.instantiation_state = 'NOT_INSTANTIATED'
        vnf.save()
        self.assertEqual(202, self.send_rules(['x'])[0])
        self.assertEqual(3, len(self.reached))


class ScaleTest(EarlyTestCase):

    def setUp(self):
        super().setUp()
        self.make_vnf()
        vnf = objects.VnfInstance.get_by_id(self.context, base.VNF_ID)
        vnf.instantiated_vnf_info.scale_status = [
            objects.ScaleInfo(aspect_id='capacity', scale_level=1)]
        vnf.save()

    def body(self, steps, kind='SCALE_OUT'):
        return {'type': kind, 'aspectId': 'capacity',
                'numberOfSteps': steps}

    def test_the_highest_level_is_said(self):
        self.assertRefused(400, 'aspect capacity: level 9 is outside 0 to ',
                           _VNF + '/scale', self.body(8))
        self.assertRefused(400, 'level -1 is outside 0 to ',
                           _VNF + '/scale', self.body(2, 'SCALE_IN'))
        self.assertPasses(_VNF + '/scale', self.body(1))


class TerminateTest(EarlyTestCase):

    def setUp(self):
        super().setUp()
        self.make_vnf()
        self.port = self.cloud.network.create_port(
            network_id=base.LEFT_NET, name='VDU1-0-left',
            description='clickos-vnf:' + base.VNF_ID)

    def chain(self):
        self.cloud.pairs = [base.resource(ingress=self.port.id, egress='x')]

    def test_a_vnf_of_a_chain_keeps_its_guests(self):
        self.chain()
        self.assertRefused(409, 'VDU1-0-left: is in a chain', _VNF
                           + '/terminate', {'terminationType': 'FORCEFUL'})
        # So does the driver, if the chain came after the request.
        self.cloud.calls.clear()
        with self.assertRaises(exception.PortInChain):
            infra_driver.ClickOSInfraDriver().delete(
                None, self.context, base.VNF_ID, dict(base.ACCESS),
                vnf_instance=objects.VnfInstance.get_by_id(
                    self.context, base.VNF_ID), terminate_vnf_req=object())
        self.assertEqual([], [call for call in self.cloud.calls
                              if 'delete' in str(call)])
        self.assertIn(self.port.id, self.cloud.ports)

    def test_others_terminate(self):
        self.assertPasses(_VNF + '/terminate', {
            'terminationType': 'FORCEFUL'})

    def test_a_vim_that_does_not_answer_is_the_drivers(self):
        self.chain()
        self.patch(chained.own, 'port_pairs', side_effect=OSError)
        self.assertPasses(_VNF + '/terminate', {
            'terminationType': 'FORCEFUL'})


class DecidedTest(EarlyTestCase):

    ERROR = {'status': 500, 'detail': 'property rules: rule 1: nonsense'}

    def setUp(self):
        super().setUp()
        self.make_vnf(instantiation_state='NOT_INSTANTIATED')
        self.make_operation('INSTANTIATE', 'FAILED_TEMP', 1)
        self.change(models.VnfLcmOpOccs, error=self.ERROR)

    def on_request(self):
        if self.reached[-1].endswith('fail'):
            self.change(models.VnfLcmOpOccs, error={
                'detail': "ProblemDetails(detail='...')"})

    def test_an_operation_that_fails_for_good_keeps_its_reason(self):
        self.status, self.answer = 200, {'id': 'x', 'error': {
            'detail': "ProblemDetails(detail='...')"}}
        self.assertEqual((200, {'id': 'x', 'error': self.ERROR}),
                         self.send(_OPERATION + '/fail'))
        self.assertEqual(self.ERROR, self.column(models.VnfLcmOpOccs,
                                                 'error'))

    def test_a_refusal_says_what_to_decide(self):
        self.status = 409
        for self.answer in ({'detail': 'it is in state ERROR'},
                            {'conflictingRequest': {'code': 409, 'message':
                                                    'it is in state ERROR'}}):
            _status, body = self.send(_VNF, method='DELETE')
            text = json.dumps(body)
            self.assertIn('it is in state ERROR; operation INSTANTIATE '
                          + base.VNF_ID, text)
            self.assertIn(f'vnflcm op fail {base.VNF_ID}', text)

    def test_other_refusals_are_tackers(self):
        self.change(models.VnfLcmOpOccs, operation_state='FAILED')
        self.status, self.answer = 409, {'detail': 'it is instantiated'}
        self.assertEqual((409, self.answer), self.send(_VNF,
                                                       method='DELETE'))
