# SPDX-License-Identifier: Apache-2.0
"""The pages of VNFs."""

from unittest import mock

from django.urls import reverse
from openstack_dashboard import api

from clickos_dashboard.api import descriptor
from clickos_dashboard.api import tacker
from clickos_dashboard import paging
from tests.unit.clickos_dashboard import base
from tests.unit.clickos_dashboard import cloud

INDEX = reverse('horizon:clickos:vnfs:index')
DETAIL = reverse('horizon:clickos:vnfs:detail', args=(cloud.VNF,))
UPDATE = reverse('horizon:clickos:vnfs:update', args=(cloud.VNF,))
LAUNCH = reverse('horizon:clickos:vnfs:launch', args=(cloud.PACKAGE,))
HANDLER = reverse('horizon:clickos:vnfs:handler',
                  args=(cloud.VNF, cloud.SERVER, 'fw.config'))
_VNF = f'/vnflcm/v1/vnf_instances/{cloud.VNF}'
_OPERATIONS = 'GET /vnflcm/v1/vnf_lcm_op_occs'


class ListTest(base.PageTest):

    def test_a_vnf_is_listed_with_its_status(self):
        self.shows(self.page(INDEX), 'edge', 'Active')

    def test_an_empty_list_tells_what_to_do(self):
        self.cloud.answers['GET /vnflcm/v1/vnf_instances'] = []
        self.shows(self.page(INDEX), 'Launch one from a package')

    def test_a_failed_operation_shows_its_reason(self):
        self.cloud.answers[_OPERATIONS] = [cloud.operation(
            operationState='FAILED_TEMP', error={'detail': 'no such image'})]
        self.shows(self.page(INDEX), 'no such image', 'Give up operation')

    def test_a_long_list_has_pages(self):
        vnfs = [cloud.vnf(id=f'{i:08}', vnfInstanceName=f'edge-{i:02}')
                for i in range(50)]
        self.cloud.answers['GET /vnflcm/v1/vnf_instances'] = vnfs
        first = self.page(INDEX)
        self.shows(first, 'edge-00', 'edge-19', 'marker=00000019')
        self.hides(first, 'edge-20', 'prev_marker')
        last = self.page(INDEX + '?marker=00000039')
        self.shows(last, 'edge-40', 'edge-49', 'prev_marker=00000040')
        self.hides(last, 'edge-39', 'href="?marker=')
        before = self.page(INDEX + '?prev_marker=00000040')
        self.shows(before, 'edge-20', 'edge-39')
        self.hides(before, 'edge-40')
        self.shows(self.page(INDEX + '?marker=gone'), 'edge-00')

    def test_a_tab_shows_the_newest_operations(self):
        self.cloud.answers[_OPERATIONS] = [
            cloud.operation(id=f'{i:03}', operation=f'HEAL-{i:03}-',
                            startTime=f'2026-01-01 00:00:{i:03}')
            for i in range(paging.MOST_ROWS + 1)]
        text = self.page(f'{DETAIL}?tab=vnf__operations')
        self.shows(text, f'HEAL-{paging.MOST_ROWS:03}-', 'HEAL-001-')
        self.hides(text, 'HEAL-000-')

    def test_a_reason_inside_an_object_is_taken_out(self):
        self.cloud.answers[_OPERATIONS] = [cloud.operation(
            operationState='FAILED', error={
                'detail': "ProblemDetails(deleted=0,detail='no host',"
                          "status=500,title='',updated_at=<?>)"})]
        text = self.page(INDEX)
        self.shows(text, 'no host')
        self.hides(text, 'ProblemDetails')

    def test_tacker_that_does_not_answer_is_told(self):
        self.cloud.answers['GET /vnflcm/v1/vnf_instances'] = (500, {})
        self.shows(self.page(INDEX), 'Tacker does not list VNFs')

    def test_actions_reach_tacker(self):
        for action, path in (('heal', '/heal'), ('terminate', '/terminate')):
            self.client.post(INDEX, {'action':
                                     f'vnfs__{action}__{cloud.VNF}'})
            method, asked, _body = self.cloud.changes[-1]
            self.assertEqual(('POST', _VNF + path), (method, asked))

    def test_a_reader_sees_no_action_that_changes(self):
        self._setup_user(roles=[{'id': '3', 'name': 'reader'}])
        self.hides(self.page(INDEX), 'Terminate VNF', 'Heal VNF',
                   'Launch VNF')


class DetailTest(base.PageTest):

    def test_each_tab_shows_its_part(self):
        for tab, wanted in (
                ('state', ('edge', 'allow icmp', cloud.SERVER)),
                ('graph', ('clickos-graph', cloud.SERVER)),
                ('handlers', ('fw.config', 'fw.hits')),
                ('configuration', ('fw :: IPFilter;',)),
                ('operations', ('INSTANTIATE', 'COMPLETED',
                                '&quot;flavourId&quot;: &quot;simple&quot;'))):
            self.shows(self.page(DETAIL + f'?tab=vnf__{tab}'), *wanted)

    def test_another_projects_vnf_leads_back_to_the_list(self):
        self.cloud.answers[f'GET {_VNF}'] = (404, {'detail': 'not found'})
        for path in (DETAIL, UPDATE, HANDLER):
            answer = self.client.get(path)
            self.assertRedirectsNoFollow(answer, INDEX)

    def test_an_id_of_other_characters_is_not_asked_for(self):
        answer = self.client.get(
            reverse('horizon:clickos:vnfs:detail', args=('..%2fx',)))
        self.assertRedirectsNoFollow(answer, INDEX)

    def test_a_dead_guest_and_a_refused_update_are_shown(self):
        self.cloud.answers[f'GET {_VNF}'] = cloud.vnf(metadata={
            'clickosState': '{"%s": "ERROR: killed"}' % cloud.VNFC,
            'clickosUpdate': '{"verdict": "refused", "message": "rule 0"}'})
        self.shows(self.page(DETAIL), 'ERROR: killed', 'rule 0', 'Degraded')

    def test_metadata_that_is_no_object_is_taken_as_none(self):
        for text in ('[', '[1]', '"x"', '9', ''):
            self.cloud.answers[f'GET {_VNF}'] = cloud.vnf(metadata={
                name: text for name in ('clickosState', 'clickosUpdate',
                                        'clickosProperties')})
            self.shows(self.page(DETAIL), 'edge')


class HandlerTest(base.PageTest):

    def test_a_handler_shows_its_value(self):
        self.shows(self.page(HANDLER), 'allow icmp', 'value="Write"')

    def test_a_handler_that_is_only_read_has_no_button(self):
        self.hides(self.page(HANDLER.replace('config', 'hits')),
                   'value="Write"')

    def test_a_value_reaches_the_guest(self):
        path = f'/v1/servers/{cloud.SERVER}/handlers/fw.config'
        self.cloud.answers[f'PUT {path}'] = {'revision': 3}
        answer = self.client.post(HANDLER, {'value': 'deny\r\nall'})
        self.assertEqual(302, answer.status_code)
        self.assertEqual([('PUT', path, {'value': 'deny\nall'})],
                         self.cloud.changes)

    def test_the_guests_error_stands_at_the_field(self):
        path = f'/v1/servers/{cloud.SERVER}/handlers/fw.config'
        self.cloud.answers[f'PUT {path}'] = (400, {'error': {
            'code': 'handler-error', 'message': 'fw: no word "frobnicate"'}})
        answer = self.client.post(HANDLER, {'value': 'frobnicate'})
        self.assertEqual(200, answer.status_code)
        self.assertEqual(['fw: no word "frobnicate"'],
                         answer.context['form'].errors['value'])
        self.shows(answer.content.decode(), 'frobnicate</textarea>')

    def test_a_router_ends_only_after_a_question(self):
        stop = HANDLER.replace('fw.config', 'stop')
        path = f'/v1/servers/{cloud.SERVER}/handlers'
        self.cloud.answers[f'GET {path}'] = {'handlers': [
            {'name': 'stop', 'read': False, 'write': True}]}
        self.cloud.answers[f'PUT {path}/stop'] = {
            'revision': 3, 'commands': ['stop']}
        answer = self.client.post(stop, {'value': '1'})
        self.assertEqual((200, []), (answer.status_code, self.cloud.changes))
        self.shows(answer.content.decode(), 'name="sure"', 'End the router')
        answer = self.client.post(stop, {'value': '1', 'sure': 'on'},
                                  follow=True)
        self.assertEqual([('PUT', f'{path}/stop', {'value': '1'})],
                         self.cloud.changes)
        self.shows(answer.content.decode(), 'does not repeat it')

    def test_an_edit_says_that_it_is_not_kept(self):
        path = f'/v1/servers/{cloud.SERVER}/handlers/fw.config'
        self.cloud.answers[f'PUT {path}'] = {
            'revision': 3, 'edits': ['fw.config']}
        answer = self.client.post(HANDLER, {'value': 'x'}, follow=True)
        self.shows(answer.content.decode(), 'It is not kept')

    def test_a_post_needs_a_csrf_token(self):
        self.client.handler.enforce_csrf_checks = True
        answer = self.client.post(HANDLER, {'value': 'deny all'})
        self.assertEqual([], self.cloud.changes)
        self.assertNotEqual(200, answer.status_code)


class UpdateTest(base.PageTest):

    def setUp(self):
        super().setUp()
        self.decide('"verdict": "accepted"')

    def decide(self, verdict):
        """Let the driver have a verdict after an update."""
        self.cloud.after['PATCH'] = {f'GET {_VNF}': cloud.vnf(metadata={
            'clickosUpdate': '{"number": 1, %s}' % verdict})}

    def test_a_refused_update_is_no_success(self):
        self.decide('"verdict": "refused", "message": "VDU1-0: fw: rule 0"')
        answer = self.client.post(
            UPDATE, {'property_rules': 'deny all'})
        self.shows(answer.content.decode(),
                   'The update is not in force: VDU1-0: fw: rule 0')

    def test_an_update_that_tacker_refuses_has_its_reason(self):
        self.cloud.answers[f'PATCH {_VNF}'] = (400, {
            'detail': 'property rules: rule 0: must start with allow'})
        answer = self.client.post(
            UPDATE, {'property_rules': 'permit all'})
        self.shows(answer.content.decode(),
                   'not accepted: property rules: rule 0: must start')

    def test_an_update_without_a_verdict_is_no_success(self):
        self.cloud.after.clear()
        with mock.patch.object(tacker, '_VERDICT_S', 0):
            answer = self.client.post(
                UPDATE, {'property_rules': 'deny all'}, follow=True)
        self.shows(answer.content.decode(), 'there is no verdict yet')

    def test_only_what_changed_is_sent(self):
        field = 'property_rules'
        self.shows(self.page(UPDATE), field, 'allow icmp')
        self.client.post(UPDATE, {field: 'allow icmp'})
        self.assertEqual([], self.cloud.changes)
        self.client.post(UPDATE, {field: 'allow icmp\n\n deny all '})
        self.assertEqual([('PATCH', _VNF, {'metadata': {
            'clickos_properties': {'rules': ['allow icmp', 'deny all']}}})],
            self.cloud.changes)


class LaunchTest(base.PageTest):

    CONTENT = f'GET /vnfpkgm/v1/vnf_packages/{cloud.PACKAGE}/package_content'

    def setUp(self):
        super().setUp()
        network = self.networks.list()[0].id
        self.data = {'name': 'edge', 'vim': 'vim-id',
                     'network_left': network, 'network_right': network,
                     'address_left': '10.0.0.1', 'address_right': '',
                     'property_rules': 'allow icmp'}
        self.cloud.answers['POST /vnflcm/v1/vnf_instances'] = {
            'id': cloud.VNF}

    def test_the_wizard_has_a_field_for_each_point_and_property(self):
        self.shows(self.page(LAUNCH), 'Network of left', 'Network of right',
                   'property_rules', 'deny all')

    def test_each_template_can_be_launched(self):
        names = cloud.templates()
        self.assertIn('firewall', names)
        for name in names:
            with self.subTest(name):
                content = cloud.csar(name)
                self.cloud.answers[self.CONTENT] = content
                found = descriptor.read(content)
                self.shows(self.page(LAUNCH), *(
                    f'name="network_{p.name}"'
                    for p in found.connection_points), *(
                    f'name="property_{p.name}"' for p in found.properties))

    def test_tacker_gets_networks_addresses_and_values(self):
        answer = self.client.post(LAUNCH, self.data)
        self.assertEqual(302, answer.status_code)
        create, start = self.cloud.changes
        self.assertEqual(('edge', cloud.VNFD), (
            create[2]['vnfInstanceName'], create[2]['vnfdId']))
        self.assertEqual(_VNF + '/instantiate', start[1])
        left, right = start[2]['extVirtualLinks']
        self.assertEqual(self.data['network_left'], left['resourceId'])
        self.assertIn('10.0.0.1', str(left))
        self.assertNotIn('fixedAddresses', str(right))
        self.assertEqual({'clickos_properties': {'rules': ['allow icmp']}},
                         start[2]['additionalParams'])

    def test_a_bad_address_is_refused_at_its_field(self):
        answer = self.client.post(LAUNCH, {**self.data,
                                           'address_left': '10.0.0.999'})
        self.assertEqual([], self.cloud.changes)
        self.shows(answer.content.decode(), 'valid IPv4 address')

    def test_a_new_network_is_made_for_a_point(self):
        self.data.update(network_right='new', prefix_right='')
        self.shows(self.client.post(LAUNCH, self.data).content.decode(),
                   'A new network needs addresses')
        self.assertEqual([], self.cloud.changes)
        self.data['prefix_right'] = '10.20.0.0/24'
        with mock.patch.object(
                api.neutron, 'network_create', autospec=True,
                return_value=self.networks.first()) as make, \
                mock.patch.object(api.neutron, 'subnet_create',
                                  autospec=True) as subnet:
            self.client.post(LAUNCH, self.data)
        self.assertEqual('edge-right', make.call_args.kwargs['name'])
        self.assertEqual('10.20.0.0/24', subnet.call_args.kwargs['cidr'])
        links = self.cloud.changes[-1][2]['extVirtualLinks']
        self.assertEqual(self.networks.first().id, links[1]['resourceId'])

    def test_a_failed_launch_removes_its_new_network(self):
        self.cloud.answers['POST /vnflcm/v1/vnf_instances'] = (
            400, {'detail': 'no'})
        self.data.update(network_right='new', prefix_right='10.20.0.0/24')
        with mock.patch.object(
                api.neutron, 'network_create', autospec=True,
                return_value=self.networks.first()), \
                mock.patch.object(api.neutron, 'subnet_create',
                                  autospec=True), \
                mock.patch.object(api.neutron, 'network_delete',
                                  autospec=True) as delete:
            self.client.post(LAUNCH, self.data)
        self.assertEqual(self.networks.first().id,
                         delete.call_args.args[1])

    def test_a_refused_launch_leaves_no_vnf(self):
        self.cloud.answers[f'POST {_VNF}/instantiate'] = (
            400, {'detail': 'no such flavour'})
        answer = self.client.post(LAUNCH, self.data)
        self.assertEqual(('DELETE', _VNF, None), self.cloud.changes[-1])
        self.shows(answer.content.decode(), 'no such flavour')
