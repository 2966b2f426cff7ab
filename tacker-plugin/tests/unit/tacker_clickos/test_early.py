# SPDX-License-Identifier: Apache-2.0
"""The filter refuses operations early, and explains failed ones."""

import contextlib
import dataclasses
import json
from unittest import mock

from clickos_lab import bounds
from tacker.db.db_sqlalchemy import models
from tacker import objects
from tacker.vnflcm import utils as vnflcm_utils
import webob
import webob.dec

from tacker_clickos import api_filter
from tacker_clickos import chained
from tacker_clickos import early
from tacker_clickos import exception
from tacker_clickos import infra_driver
from tacker_clickos import judgement
from tacker_clickos import outages
from tacker_clickos import tacker_db
from tests.unit.tacker_clickos import base
from tests.unit.tacker_clickos import cost
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

    def assertReleasedBefore(self, module, name):
        """Check that no connection to the database waits for a function."""
        release = self.patch(tacker_db, 'release')

        def called(*_arguments):
            release.assert_called_once_with(self.context)
            return None if name == 'require' else ()
        return self.patch(module, name, side_effect=called)

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

    def use_images(self, *groups):
        """Let Glance have an image for each text of groups."""
        base.use_checker(self)
        path = self.package / 'Files/firewall.click'
        path.write_text(path.read_text() + 'Idle -> WireGuard -> Discard;')
        self.cloud.images[:] = [
            base.image('i%d' % number, 'clickos' if not number else 'more',
                       text, tags=['clickos'])
            for number, text in enumerate(groups)]

    def test_a_class_that_no_image_has(self):
        self.use_images('device,standard')
        self.assertRefused(409, 'missing: wireguard (class WireGuard); ask '
                           'the operator', _VNF + '/instantiate',
                           self.body())

    def test_a_package_that_names_its_groups(self):
        path = self.package / 'Definitions' / 'firewall.yaml'
        path.write_text(path.read_text().replace(
            'artifact: click', "artifact: click\n          groups: "
            "{wireguard: 'Named'}"))
        self.use_images('device,standard')
        self.assertRefused(409, 'missing: wireguard (class Named); ask',
                           _VNF + '/instantiate', self.body())

    def test_the_program_runs_while_the_project_has_its_turn(self):
        self.use_images('device,standard')
        owners = []
        self.patch(judgement.elements, 'needed', side_effect=lambda *_: (
            owners.append(set(judgement._queue._busy))))
        self.assertPasses(_VNF + '/instantiate', self.body())
        self.assertEqual([{self.context.project_id}], owners)

    def test_glance_is_asked_for_a_bounded_number_of_images(self):
        found = [['image%d' % (number // 2), {'standard': 'Queue'}]
                 for number in range(90)]
        self.patch(judgement, 'require', return_value=found)
        choose = self.patch(early.images, 'choose')
        self.assertPasses(_VNF + '/instantiate', self.body())
        self.assertEqual(['image%d' % number for number in range(16)],
                         [call.args[1] for call in choose.mock_calls])

    def test_another_image_of_the_family_has_it(self):
        self.use_images('device,standard', 'device,standard,wireguard')
        for more in ({}, {'vimConnectionInfo': [{'vimId': base.VIM_ID}]}):
            self.assertPasses(_VNF + '/instantiate', {**self.body(), **more})
            self.reached.clear()

    def test_a_vim_that_does_not_answer_is_tackers(self):
        self.use_images('device,standard')
        vnflcm_utils.get_vim.side_effect = ValueError
        for more in ({}, {'vimConnectionInfo': ['odd']}):
            self.assertPasses(_VNF + '/instantiate', {**self.body(), **more})
            self.reached.clear()

    def test_what_a_package_says_makes_one_line_of_the_log(self):
        self.use_images('device,standard')
        self.patch(early.images, 'choose', side_effect=ValueError(
            'image x\nERROR forged' + 'x' * 9000))
        with self.assertLogs('tacker_clickos.early', 'INFO') as logged:
            self.assertPasses(_VNF + '/instantiate', self.body())
        for line in logged.output:
            self.assertNotIn('\n', line)
            self.assertLess(len(line), 600)

    def test_a_package_on_another_host_is_tackers(self):
        vnflcm_utils.get_vnf_package_path.return_value = str(
            self.package / 'nowhere')
        self.assertPasses(_VNF + '/instantiate', self.body(no_such=1))

    def test_what_is_no_value_is_refused_or_tackers(self):
        path = _VNF + '/instantiate'
        for wanted in ('text', ['text'], 1):
            self.assertRefused(400, 'expected an object', path, {
                'flavourId': 'simple',
                'additionalParams': {'clickos_properties': wanted}})
        self.assertPasses(path, {'flavourId': ['simple']})

    def slow(self):
        """Let the package have a list whose values take long."""
        states = '[ab]*' * 20 + '[ab]{0,150}'
        path = self.package / 'Definitions' / 'firewall.yaml'
        path.write_text(path.read_text().replace(
            'type: filter_rules', 'type: list\n              items: '
            '{type: string, max_length: 255, pattern: "%s"}' % states
        ).replace('default: [deny all]', 'default: [ab]').replace(
            'max_items: 10000', 'max_items: 512'))
        return self.body(guests={f'VDU1-{number}': {
            'rules': ['ab' * 127] * 512} for number in range(15)})

    def test_slow_values_do_not_hold_up_other_projects(self):
        self.enterContext(mock.patch.object(
            judgement, 'LIMITS', dataclasses.replace(judgement.LIMITS,
                                                     cpu_s=0.2)))
        body = self.slow()
        bounds.hold('max_judgement_thread_seconds', cost.least_thread_s(
            lambda: self.assertRefused(
                400, 'took more than 0.2 s of processor time',
                _VNF + '/instantiate', body)))

    def test_long_patterns_do_not_take_the_time_of_the_drivers(self):
        self.assertPasses(_VNF + '/instantiate', self.slow())

    def test_a_project_judges_a_few_requests_at_a_time(self):
        with contextlib.ExitStack() as full:
            for _ in range(judgement.OF_PROJECT):
                full.enter_context(judgement._queue.entry(
                    self.context.project_id))
            self.assertRefused(429, 'try again', _VNF + '/instantiate',
                               self.body(rules=['allow icmp']))
        self.assertPasses(_VNF + '/instantiate', self.body(
            rules=['allow icmp']))

    def test_the_bytes_of_bodies_that_wait_are_bounded(self):
        request = _VNF + '/instantiate', self.body(rules=['allow icmp'])
        self.patch(judgement, 'require', side_effect=lambda *_: seen.append(
            dict(api_filter._bodies._held)))
        seen = []
        with api_filter._bodies.taken(self.context.project_id,
                                      api_filter.OF_PROJECT):
            self.assertRefused(429, 'bytes wait already', *request)
        self.assertPasses(*request)
        self.assertEqual([{self.context.project_id: api_filter.LEAST}], seen)
        self.assertEqual({}, dict(api_filter._bodies._held))

    def test_no_connection_to_the_database_waits(self):
        asked = self.assertReleasedBefore(judgement, 'require')
        self.assertPasses(_VNF + '/instantiate', self.body())
        asked.assert_called_once()

    def test_operations_that_begin_while_it_waits_count(self):
        found = self.patch(tacker_db, 'open_operations', return_value=[])

        def others_begin(*_arguments):
            found.return_value = [('o', 'v')] * early.MAX_OPEN
        self.patch(judgement, 'require', side_effect=others_begin)
        self.assertRefused(429, 'of this project are in progress',
                           _VNF + '/instantiate', self.body())


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

    def test_an_operation_that_begins_while_it_waits_is_waited_for(self):
        self.patch(judgement, 'require', side_effect=lambda *_: (
            self.make_operation('HEAL', 'PROCESSING', 0)))
        code, body = self.send_rules(['deny all'])
        self.assertEqual((409, []), (code, self.reached))
        self.assertIn('operation HEAL', body['detail'])

    def test_guests_of_another_package_are_the_drivers(self):
        path = self.package / 'Definitions' / 'firewall.yaml'
        path.write_text(path.read_text().replace('VDU1', 'VDU2'))
        self.assertEqual(202, self.send_rules(['permit all'])[0])

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

    def test_an_aspect_that_is_no_text_is_tackers(self):
        self.assertPasses(_VNF + '/scale', {
            **self.body(8), 'aspectId': ['capacity']})

    def test_an_aspect_of_another_package_is_tackers(self):
        path = self.package / 'Definitions' / 'firewall.yaml'
        path.write_text(path.read_text().replace('capacity', 'another'))
        self.assertPasses(_VNF + '/scale', self.body(8))


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

    def test_no_request_waits_for_the_end_of_an_outage(self):
        seen = []
        self.patch(chained.own, 'port_pairs', side_effect=lambda *_: (
            seen.append(outages.patience_s()) or ()))
        self.assertPasses(_VNF + '/terminate', {
            'terminationType': 'FORCEFUL'})
        self.assertEqual([0], seen)

    def test_no_connection_to_the_database_waits(self):
        asked = self.assertReleasedBefore(chained.own, 'port_pairs')
        self.assertPasses(_VNF + '/terminate', {
            'terminationType': 'FORCEFUL'})
        asked.assert_called_once()

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
