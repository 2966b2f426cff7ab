# SPDX-License-Identifier: Apache-2.0
"""The pages of VNFs."""

import json
import types
from unittest import mock

from django.urls import reverse
from openstack_dashboard import api

from clickos_dashboard.api import descriptor
from clickos_dashboard.api import tacker
from clickos_dashboard.guests import turns
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

    def test_a_failed_operation_is_retried_or_given_up(self):
        failed = self.cloud.answers[_OPERATIONS] = [cloud.operation(
            operationState='FAILED_TEMP')]
        text = self.page(INDEX)
        self.shows(text, 'Retry operation', 'Give up operation',
                   'It is INSTANTIATE of 2026-01-01 00:00:00.')
        for action, path in (('retry', '/retry'), ('give_up', '/fail')):
            self.client.post(INDEX, {'action':
                                     f'vnfs__{action}__{cloud.VNF}'})
            self.assertEqual(('POST', '/vnflcm/v1/vnf_lcm_op_occs/'
                              f'{cloud.OPERATION}{path}', None),
                             self.cloud.changes[-1])
        self.cloud.changes.clear()
        failed[0]['operationState'] = 'COMPLETED'
        self.client.post(INDEX, {'action': f'vnfs__retry__{cloud.VNF}'})
        self.assertEqual([], self.cloud.changes)

    def test_each_action_that_ends_something_asks(self):
        """Horizon asks before red actions, asks.js before the others."""
        self.cloud.answers[_OPERATIONS] = [cloud.operation(
            operationState='FAILED_TEMP')]
        for page in (INDEX, DETAIL):
            text = self.page(page)
            for name in ('heal', 'retry', 'give_up', 'terminate'):
                button = text[:text.index(
                    f'value="vnfs__{name}__{cloud.VNF}"')].rpartition(
                        '<button')[2]
                self.assertRegex(button, 'btn-danger|data-clickos-asks')
            # By it the question knows what it is about.
            self.shows(text, 'data-display="edge"')

    def test_a_refusal_of_an_action_is_told_in_words(self):
        self.cloud.answers[f'POST {_VNF}/terminate'] = (409, {
            'detail': 'port left: chain web has it'})
        answer = self.client.post(
            INDEX, {'action': f'vnfs__terminate__{cloud.VNF}'}, follow=True)
        self.shows(answer.content.decode(),
                   'Terminate VNF, edge: port left: chain web has it')

    def test_addresses_are_listed_by_connection_point(self):
        port, network = self.ports.first(), self.networks.first()
        address = port.fixed_ips[0]['ip_address']
        self.shows(self.page(INDEX), f'left: {address} ({network.name})')
        self.shows(self.page(DETAIL), '<td>left</td><td>VDU1-0</td>'
                   f'<td>{network.name}</td><td>{address}</td>')

    def test_a_vnf_of_many_ports_has_few_lines(self):
        port = self.ports.first()
        api.neutron.port_list.return_value = [port] * 9
        self.shows(self.page(INDEX), 'and 3 more')

    def test_a_port_of_another_project_is_left_out(self):
        self.ports.first()._apidict['project_id'] = 'other'
        self.hides(self.page(INDEX), 'left: ')

    def test_neutron_that_does_not_answer_is_told(self):
        api.neutron.port_list.side_effect = ValueError('down')
        self.shows(self.page(INDEX), 'edge', 'Neutron does not list ports')

    def test_a_reader_sees_no_action_that_changes(self):
        self._setup_user(roles=[{'id': '3', 'name': 'reader'}])
        self.hides(self.page(INDEX), 'Terminate VNF', 'Heal VNF',
                   'Launch VNF')


class SearchTest(base.PageTest):

    def setUp(self):
        super().setUp()
        self.cloud.answers['GET /vnflcm/v1/vnf_instances'] = [
            cloud.vnf(id=f'{i:08}', vnfInstanceName=f'edge-{i:02}',
                      vnfProductName='Router' if i % 2 else 'Firewall')
            for i in range(50)] + [cloud.vnf(
                id='new', vnfInstanceName='core',
                instantiationState='NOT_INSTANTIATED',
                instantiatedVnfInfo=None)]

    def test_words_are_found_in_every_column(self):
        text = self.page(INDEX + '?vnfs_search=ROUTER+edge-0')
        self.shows(text, 'edge-01', 'edge-09', 'value="ROUTER edge-0"')
        self.hides(text, 'edge-00', 'edge-11', '>core<')
        self.shows(self.page(INDEX + '?vnfs_search=00000042'), 'edge-42')

    def test_an_address_is_found(self):
        self.cloud.answers['GET /vnflcm/v1/vnf_instances'].append(cloud.vnf())
        address = self.ports.first().fixed_ips[0]['ip_address']
        text = self.page(f'{INDEX}?vnfs_search={address}')
        self.shows(text, address, 'Displaying 1 item')

    def test_a_state_is_chosen(self):
        text = self.page(INDEX + '?vnfs_state=new')
        self.shows(text, 'core', '<option value="new" selected>Not launched')
        self.hides(text, 'edge-00')
        text = self.page(INDEX + '?vnfs_state=<script>')
        self.shows(text, 'Nothing in the list has this', 'Show all')

    def test_pages_and_actions_keep_the_search(self):
        first = self.page(INDEX + '?vnfs_search=router')
        self.shows(first, 'href="?vnfs_search=router&amp;marker=00000039"',
                   f'action="{INDEX}?vnfs_search=router"')
        self.hides(first, 'edge-41')
        last = self.page(INDEX + '?vnfs_search=router&marker=00000039')
        self.shows(last, 'edge-41', 'edge-49',
                   'vnfs_search=router&amp;prev_marker=00000041')
        self.hides(last, 'edge-39', 'edge-40')

    def test_a_row_of_a_search_is_deleted(self):
        answer = self.client.post(INDEX + '?vnfs_search=core', {
            'action': 'vnfs__delete__new'})
        self.assertEqual(INDEX + '?vnfs_search=core', answer['location'])
        self.assertEqual(('DELETE', '/vnflcm/v1/vnf_instances/new', None),
                         self.cloud.changes[-1])

    def test_work_is_bounded(self):
        text = self.page(f'{INDEX}?vnfs_search={"edge " * 200}')
        self.shows(text, 'edge-00')
        self.hides(text, 'edge ' * 52)

    def test_tabs_have_a_search(self):
        for tab, name, word, found, other in (
                ('handlers', 'handlers', 'hits', 'fw.hits', 'fw.config'),
                ('operations', 'operations', 'heal', 'HEAL', 'SCALE')):
            self.cloud.answers[_OPERATIONS] = [
                cloud.operation(id=each, operation=each.upper())
                for each in ('heal', 'scale')]
            text = self.page(f'{DETAIL}?tab=vnf__{tab}'
                             f'&guest={cloud.SERVER}&{name}_search={word}')
            start = text.index(f'id="vnf__{tab}"')
            self.shows(text[start:], found,
                       f'name="tab" value="vnf__{tab}"',
                       f'name="guest" value="{cloud.SERVER}"')
            self.hides(text[start:], other)


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
        self.assertEqual(['rule 0: must start with allow'],
                         answer.context['form'].errors['property_rules'])
        self.shows(answer.content.decode(), 'permit all</textarea>')

    def test_a_refusal_of_no_single_property_stands_above_the_form(self):
        self.cloud.answers[f'PATCH {_VNF}'] = (409, {'detail': 'it is busy'})
        answer = self.client.post(UPDATE, {'property_rules': 'deny all'})
        self.assertEqual(
            ['The update was not accepted: it is busy'],
            answer.context['form'].errors['__all__'])
        self.shows(answer.content.decode(), 'deny all</textarea>')

    def test_a_user_waits_for_one_verdict_at_a_time(self):
        self.cloud.after.clear()
        request = types.SimpleNamespace(user=self.user)
        with turns.turn(request), mock.patch.object(
                tacker, '_verdict', autospec=True) as wait:
            answer = self.client.post(
                UPDATE, {'property_rules': 'deny all'}, follow=True)
        wait.assert_not_called()
        self.shows(answer.content.decode(), 'there is no verdict yet')
        self.assertEqual('PATCH', self.cloud.changes[0][0])

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


class ScaleTest(base.PageTest):

    def setUp(self):
        super().setUp()
        found = cloud.vnf()
        found['instantiatedVnfInfo']['scaleStatus'] = [
            {'aspectId': 'more', 'scaleLevel': 1}]
        self.cloud.answers[f'GET {_VNF}'] = found
        self.path = reverse('horizon:clickos:vnfs:scale', args=(cloud.VNF,))

    def scale(self, **data):
        """Send the form."""
        return self.client.post(self.path, {
            'aspect': 'more', 'kind': 'SCALE_OUT', 'steps': '1', **data})

    def test_more_guests_are_made(self):
        self.shows(self.page(self.path), 'Scale edge',
                   'end guests of &quot;edge&quot;')
        self.scale()
        self.assertEqual([('POST', f'{_VNF}/scale', {
            'type': 'SCALE_OUT', 'aspectId': 'more', 'numberOfSteps': 1})],
            self.cloud.changes)

    def test_guests_end_only_after_a_tick(self):
        self.shows(self.scale(kind='SCALE_IN').content.decode(),
                   'Guests end only if you tick this')
        self.assertEqual([], self.cloud.changes)
        self.scale(kind='SCALE_IN', sure='on')
        self.assertEqual('SCALE_IN', self.cloud.changes[-1][2]['type'])


class LaunchTest(base.PageTest):

    CONTENT = f'GET /vnfpkgm/v1/vnf_packages/{cloud.PACKAGE}/package_content'

    def setUp(self):
        super().setUp()
        network = self.networks.list()[0].id
        self.data = {'name': 'edge', 'vim': 'vim-id',
                     'network_left': network, 'network_right': network,
                     'address_left': '10.0.0.5', 'address_right': '',
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
        self.assertIn('10.0.0.5', str(left))
        self.assertNotIn('fixedAddresses', str(right))
        self.assertEqual({'clickos_properties': {'rules': ['allow icmp']}},
                         start[2]['additionalParams'])

    def test_a_bad_address_is_refused_at_its_field(self):
        answer = self.client.post(LAUNCH, {**self.data,
                                           'address_left': '10.0.0.999'})
        self.assertEqual([], self.cloud.changes)
        self.shows(answer.content.decode(),
                   '10.0.0.999: expected an address such as')

    def test_addresses_of_both_families_reach_tacker(self):
        subnet = self.networks.first().subnets[1]
        subnet._apidict['ipv6_address_mode'] = None
        self.data['address_left'] = '10.0.0.5, FDB6:b88a:488e::5'
        self.client.post(LAUNCH, self.data)
        left = self.cloud.changes[-1][2]['extVirtualLinks'][0]
        self.assertEqual(
            [{'type': 'IPV4', 'fixedAddresses': ['10.0.0.5']},
             {'type': 'IPV6', 'fixedAddresses': ['fdb6:b88a:488e::5']}],
            left['extCps'][0]['cpConfig'][0]['cpProtocolData'][0][
                'ipOverEthernet']['ipAddresses'])

    def test_a_vnf_may_be_the_gateway_of_a_network(self):
        gateway = self.networks.first().subnets[0].gateway_ip
        self.client.post(LAUNCH, {**self.data, 'address_left': gateway})
        self.assertIn(gateway, str(self.cloud.changes[-1]))

    def test_an_address_that_the_network_cannot_give_is_refused(self):
        for typed, wanted in (
                ('10.0.1.5', 'is in no subnet of the network'),
                ('2001:db8::5', 'is in no subnet of the network'),
                ('fdb6:b88a:488e::5', 'have automatic addresses only'),
                ('10.0.0.0', 'is not an address for a port'),
                ('10.0.0.255', 'is not an address for a port'),
                ('10.0.0.5 10.0.0.5', '10.0.0.5 is given twice'),
                ('ff02::1', 'ff02::1: expected an address'),
                ('fe80::1%25eth0', 'expected an address'),
                ('::1', '::1: expected an address'),
                ('<b>', '&lt;b&gt;: expected an address'),
                ('1' * 256, 'at most 255 characters')):
            with self.subTest(typed):
                answer = self.client.post(LAUNCH, {
                    **self.data, 'address_left': typed})
                text = answer.content.decode()
                self.assertIn(wanted, text[text.index('id_address_left'):])
        self.assertEqual([], self.cloud.changes)

    def test_a_property_that_tacker_refuses_stands_at_its_field(self):
        self.cloud.answers[f'POST {_VNF}/instantiate'] = (400, {
            'detail': 'property rules: rule 0: must start with allow'})
        answer = self.client.post(LAUNCH, {**self.data,
                                           'property_rules': 'permit all'})
        step = answer.context['workflow'].get_step('properties')
        self.assertEqual(['rule 0: must start with allow'],
                         step.action.errors['property_rules'])
        self.assertEqual('properties',
                         answer.context['workflow'].get_entry_point())
        self.shows(answer.content.decode(), 'permit all</textarea>',
                   'value="edge"', 'value="10.0.0.5"')

    def test_a_post_without_networks_is_refused_in_words(self):
        for name in ('network_left', 'network_right'):
            del self.data[name]
        self.shows(self.client.post(LAUNCH, self.data).content.decode(),
                   'This field is required')
        self.assertEqual([], self.cloud.changes)

    def test_a_network_that_neutron_refuses_is_told_at_its_field(self):
        self.data.update(network_right='new', prefix_right='10.20.0.0/24')
        with mock.patch.object(api.neutron, 'network_create', autospec=True,
                               side_effect=ValueError('no quota left')):
            answer = self.client.post(LAUNCH, self.data)
        step = answer.context['workflow'].get_step('networks')
        self.assertEqual(['no quota left'],
                         step.action.errors['prefix_right'])
        self.assertEqual([], self.cloud.changes)

    def test_a_new_network_of_a_long_name(self):
        self.data.update(name='n' * 255, network_right='new',
                         prefix_right='10.20.0.0/24')
        with mock.patch.object(api.neutron, 'network_create', autospec=True,
                               side_effect=self.exceptions.neutron) as create:
            self.client.post(LAUNCH, self.data)
        self.assertEqual('n' * 249 + '-right', create.call_args[1]['name'])

    def test_bad_subnets_of_a_new_network_are_refused(self):
        for typed, wanted in (
                ('10.20.0.0', 'expected a network such as'),
                ('10.20.0.1/24', 'expected a network such as'),
                ('2001:db8::1/128', 'expected a network such as'),
                ('ff00::/8', 'expected a network such as'),
                ('10.20.0.0/24 10.21.0.0/24', 'one network of each family')):
            with self.subTest(typed):
                answer = self.client.post(LAUNCH, {
                    **self.data, 'network_right': 'new',
                    'prefix_right': typed})
                self.shows(answer.content.decode(), wanted)
        answer = self.client.post(LAUNCH, {
            **self.data, 'prefix_left': '10.20.0.0/24'})
        self.shows(answer.content.decode(), 'Only for a new network.')
        answer = self.client.post(LAUNCH, {
            **self.data, 'network_right': 'new', 'address_right': '10.0.0.5',
            'prefix_right': '2001:db8::/64'})
        self.shows(answer.content.decode(), 'is in no subnet of the network')
        self.assertEqual([], self.cloud.changes)

    def test_a_new_network_is_made_for_a_point(self):
        self.data.update(network_right='new', prefix_right='')
        self.shows(self.client.post(LAUNCH, self.data).content.decode(),
                   'A new network needs subnets')
        self.assertEqual([], self.cloud.changes)
        self.data['prefix_right'] = '10.20.0.0/24 2001:db8::/64'
        with mock.patch.object(
                api.neutron, 'network_create', autospec=True,
                return_value=self.networks.first()) as make, \
                mock.patch.object(api.neutron, 'subnet_create',
                                  autospec=True) as subnet:
            self.client.post(LAUNCH, self.data)
        self.assertEqual('edge-right', make.call_args.kwargs['name'])
        self.assertEqual([('10.20.0.0/24', 4), ('2001:db8::/64', 6)], [
            (call.kwargs['cidr'], call.kwargs['ip_version'])
            for call in subnet.call_args_list])
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


class RequestsTest(base.PageTest):
    """A member's operations may have requests of 2 MB each."""

    def asked(self, path):
        """Return what a page asks Tacker about operations, and the page."""
        urls, send = [], self.cloud.send

        def note(request, **options):
            urls.append(request.url)
            return send(request, **options)
        with mock.patch.object(self.cloud, 'send', side_effect=note):
            text = self.page(path)
        return [url for url in urls if 'op_occs' in url], text

    def test_only_the_list_of_operations_asks_for_their_requests(self):
        for path in (INDEX, DETAIL, reverse('horizon:clickos:overview:index'),
                     reverse('horizon:clickos:topology:index')):
            urls, _text = self.asked(path)
            self.assertTrue(urls, path)
            self.assertNotIn('operationParams', ' '.join(urls))
        urls, text = self.asked(f'{DETAIL}?tab=vnf__operations')
        self.assertIn('operationParams', ' '.join(urls))
        self.shows(text, 'flavourId')

    def test_a_long_request_is_not_shown(self):
        self.cloud.answers['GET /vnflcm/v1/vnf_lcm_op_occs'] = [
            cloud.operation(operationParams=json.dumps({'a': 'x' * 70000}))]
        _urls, text = self.asked(f'{DETAIL}?tab=vnf__operations')
        self.shows(text, f'70009 characters; openstack vnflcm op show'
                         f' {cloud.OPERATION}')
        self.hides(text, 'x' * 100)
