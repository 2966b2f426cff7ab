# SPDX-License-Identifier: Apache-2.0
"""The pages of guests: the list, the graph, counters, the editor."""

import pathlib
import tempfile
import types
from unittest import mock

from django.core.cache import cache
from django.test import override_settings
from django.urls import reverse
from openstack_dashboard import api

from clickos_dashboard import paging
from tests.unit.clickos_dashboard import base
from tests.unit.clickos_dashboard import cloud

INDEX = reverse('horizon:clickos:guests:index')
DETAIL = reverse('horizon:clickos:guests:detail', args=(cloud.SERVER,))
EDITOR = reverse('horizon:clickos:guests:configuration',
                 args=(cloud.SERVER,))
COUNTERS = reverse('horizon:clickos:guests:counters', args=(cloud.SERVER,))
_SERVER = f'/v1/servers/{cloud.SERVER}'
_REPLACE = f'PUT {_SERVER}/configuration'
#: Stands for click-check: refuses what names the class Wrong.
_CHECKER = '''#!/bin/sh
if grep -q Wrong; then
    echo "-:2:6: unknown element class Wrong" >&2; exit 1
fi
'''


def server(**changes):
    """Return a server as Horizon's API gives it."""
    return types.SimpleNamespace(**{
        'id': cloud.SERVER, 'name': 'plain', 'status': 'ACTIVE',
        'metadata': {}, 'image': {'id': 'image'}, **changes})


class GuestTest(base.PageTest):
    """A cloud with one server without a VNF."""

    def setUp(self):
        super().setUp()
        cache.clear()
        self.servers = [server()]
        image = types.SimpleNamespace(
            id='image', properties={'clickos_sha256': '0'})
        for place, name, answer in (
                (api.glance, 'image_list_detailed', ([image], False, False)),
                (api.nova, 'server_list', (self.servers, False))):
            self.patch(place, name, answer)
        self.asked = self.patch(api.nova, 'server_get', self.servers[0])
        self.patch(api.nova, 'instance_action_list', [types.SimpleNamespace(
            action='create', start_time='2026-01-01', message=None,
            request_id='req-1')])
        folder = pathlib.Path(self.enterContext(
            tempfile.TemporaryDirectory()))
        self.checker = folder / 'click-check'
        self.checker.write_text(_CHECKER)
        self.checker.chmod(0o755)
        self.enterContext(override_settings(
            CLICKOS_CHECK_PROGRAM=str(self.checker)))

    def patch(self, place, name, answer):
        return self.enterContext(mock.patch.object(
            place, name, autospec=True, return_value=answer))


class ListTest(GuestTest):

    def test_a_server_of_a_vnf_or_of_another_image_is_left_out(self):
        self.servers += [
            server(id='2', name='of-vnf', metadata={'clickos_vnf': 'x'}),
            server(id='3', name='linux', image={'id': 'other'}),
            server(id='4', name='from-disk', image='')]
        text = self.page(INDEX)
        self.shows(text, 'plain')
        self.hides(text, 'of-vnf', 'linux', 'from-disk')

    def test_an_empty_list_tells_what_to_do(self):
        del self.servers[:]
        self.shows(self.page(INDEX), 'Launch an instance from a ClickOS')

    def test_guests_are_found_by_word_and_state(self):
        self.servers.append(server(id='2', name='other', status='ERROR'))
        text = self.page(INDEX + '?guests_state=ERROR')
        self.shows(text, 'other', '<option value="ACTIVE">')
        self.hides(text, 'data-display="plain"')
        text = self.page(INDEX + '?guests_search=PLAIN')
        self.shows(text, 'data-display="plain"')
        self.hides(text, 'data-display="other"')


class DetailTest(GuestTest):

    def test_events_are_found_among_all(self):
        """Also behind the newest ones, which a tab shows."""
        api.nova.instance_action_list.return_value = [
            types.SimpleNamespace(
                action='reboot', start_time='2026-01-01', message=None,
                request_id=f'req-{i}') for i in range(paging.MOST_ROWS)] + [
            types.SimpleNamespace(
                action='create', start_time='2025-01-01', message=None,
                request_id='req-first')]
        path = DETAIL + '?tab=guest__events'
        self.hides(self.page(path), 'req-first')
        text = self.page(path + '&events_search=create')
        self.shows(text, 'req-first', 'name="tab" value="guest__events"')
        self.hides(text, 'req-1<')

    def test_each_tab_shows_its_part(self):
        for tab, wanted in (('graph', ('clickos-graph', cloud.SERVER)),
                            ('counters', ('fa:16:3e:00:00:01', 'guard: 3')),
                            ('handlers', ('fw.config', 'fw.hits')),
                            ('configuration', ('fw :: IPFilter;', EDITOR)),
                            ('events', ('create', 'req-1',
                                        'fw.click:1:1: unknown class'))):
            self.shows(self.page(DETAIL + f'?tab=guest__{tab}'), *wanted)

    def test_a_tab_shows_which_rule_dropped_what(self):
        path = DETAIL + '?tab=guest__drops'
        self.shows(self.page(path), '10.0.0.2:81', 'deny tcp dst port 81',
                   '[::1]:5', 'no rule matches')
        text = self.page(path + '&drops_search=port 81')
        self.shows(text, '10.0.0.2:81')
        self.hides(text, 'no rule matches')
        self.cloud.answers[f'GET /v1/servers/{cloud.SERVER}/handlers'
                           '/fw.log'] = {'name': 'fw.log', 'value': 'what'}
        self.shows(self.page(path), 'does not show what it dropped')

    def test_a_tab_shows_the_newest_events(self):
        api.nova.instance_action_list.return_value = [
            types.SimpleNamespace(action='reboot', start_time='2026-01-01',
                                  message=None, request_id=f'req-{i:03}-')
            for i in range(paging.MOST_ROWS + 1)]
        text = self.page(DETAIL + '?tab=guest__events')
        self.shows(text, f'req-{paging.MOST_ROWS - 1:03}-')
        self.hides(text, f'req-{paging.MOST_ROWS:03}-')

    def test_another_projects_server_leads_back_to_the_list(self):
        self.asked.side_effect = self.exceptions.nova
        for path, home in ((DETAIL, INDEX), (EDITOR, reverse(
                'horizon:clickos:vnfs:index'))):
            self.assertRedirectsNoFollow(self.client.get(path), home)

    def test_a_handler_leads_back_to_the_guest(self):
        path = reverse('horizon:clickos:guests:handler',
                       args=(cloud.SERVER, 'fw.config'))
        self.shows(self.page(path), 'allow icmp')
        self.cloud.answers[f'PUT {_SERVER}/handlers/fw.config'] = {
            'revision': 3}
        answer = self.client.post(path, {'value': 'deny all'})
        self.assertEqual(302, answer.status_code)
        self.assertTrue(answer['Location'].startswith(DETAIL))


class CountersTest(GuestTest):

    def test_ports_and_counting_handlers_are_answered(self):
        self.cloud.answers[f'GET {_SERVER}/handlers'] = {'handlers': [
            {'name': name, 'read': True, 'write': False}
            for name in ('c.count', 'c.rate', 'd.drops', 'e.count')]}
        for name, value in (('c.count', '17'), ('d.drops', 'none')):
            self.cloud.answers[f'GET {_SERVER}/handlers/{name}'] = {
                'name': name, 'value': value}
        answer = self.client.get(COUNTERS).json()
        self.assertEqual([{'name': 'c.count', 'value': 17}],
                         answer['handlers'])
        port = answer['ports'][0]
        self.assertEqual((10, 20, 3), (port['rx_packets'],
                                       port['tx_packets'], port['drops']))

    def test_a_refusal_is_an_error(self):
        self.cloud.answers[f'GET {_SERVER}/ports'] = (404, {'error': {
            'code': 'no-such-server', 'message': 'no such server'}})
        self.shows(self.page(COUNTERS, status=502), 'no such server')


class EditorTest(GuestTest):

    NEW = 'elementclass F {$a | input -> output}\r\nfw :: IPFilter;'

    def post(self, action, text=NEW, **more):
        return self.client.post(EDITOR, {'action': action, 'text': text,
                                         **more})

    def test_the_page_shows_what_runs_letter_by_letter(self):
        self.cloud.answers[f'GET {_SERVER}/handlers/config'] = {
            'name': 'config', 'value': 'elementclass F {$a | <b>}'}
        self.shows(self.page(EDITOR), 'F {$a | &lt;b&gt;}', 'Replace')

    def test_a_check_names_line_and_column(self):
        answer = self.post('check', 'a :: Idle;\nb :: Wrong;')
        self.assertEqual([(2, 6, 'unknown element class Wrong')],
                         answer.context['faults'])
        self.shows(answer.content.decode(), 'b :: Wrong;',
                   'data-line="2"')
        self.assertTrue(self.post('check').context['checked'])
        self.assertEqual([], self.cloud.changes)

    def test_horizon_without_the_program_says_so(self):
        self.checker.unlink()
        self.shows(self.post('check').content.decode(),
                   'Horizon cannot check the text')

    def test_the_difference_is_shown(self):
        answer = self.post('compare').content.decode()
        self.shows(answer, 'clickos-added', '+elementclass F {$a |')
        same = self.post('compare', 'fw :: IPFilter;').context
        self.assertEqual([], same['difference'].lines)

    def test_a_faulty_text_is_not_sent(self):
        answer = self.post('replace', 'b :: Wrong;')
        self.assertEqual(200, answer.status_code)
        self.assertEqual([], self.cloud.changes)

    def test_replace_and_undo(self):
        self.cloud.answers[_REPLACE] = {'revision': 4}
        self.assertEqual(302, self.post('replace').status_code)
        self.assertEqual(
            ('PUT', f'{_SERVER}/configuration',
             {'config': self.NEW.replace('\r\n', '\n'),
              'config_name': 'dashboard'}), self.cloud.changes[-1])
        self.shows(self.page(EDITOR), 'Undo revision 4')
        self.cloud.answers[_REPLACE] = {'revision': 5}
        self.assertEqual(302, self.post('undo', revision=4).status_code)
        self.assertEqual('fw :: IPFilter;',
                         self.cloud.changes[-1][2]['config'])
        self.shows(self.page(EDITOR), 'Undo revision 5', 'Undo revision 4')
        self.shows(self.post('undo', revision=99).content.decode(),
                   'not kept any more')

    def test_the_guests_refusal_keeps_the_text(self):
        self.cloud.answers[_REPLACE] = (400, {'error': {
            'code': 'bad-config',
            'message': 'dashboard:2:7: IPFilter: bad rule'}})
        answer = self.post('replace')
        self.shows(answer.content.decode(), 'The old configuration runs on',
                   'bad rule', 'data-line="2"', 'elementclass F {$a')

    def test_a_vnfs_configuration_is_not_replaced(self):
        self.servers[0].metadata['clickos_vnf'] = cloud.VNF
        text = self.page(EDITOR)
        self.shows(text, 'belongs to the descriptor')
        self.hides(text, 'value="replace"')

    def test_a_reader_replaces_nothing(self):
        self._setup_user(roles=[{'id': '3', 'name': 'reader'}])
        self.hides(self.page(EDITOR), 'value="replace"')

    def test_a_post_needs_a_csrf_token(self):
        self.client.handler.enforce_csrf_checks = True
        self.post('replace')
        self.assertEqual([], self.cloud.changes)


class GraphTest(base.PageTest):

    PATH = reverse('horizon:clickos:guests:graph',
                   args=(cloud.SERVER,))
    ANSWER = f'GET /v1/servers/{cloud.SERVER}/handlers/graph'

    def answer(self, watched_s, packets):
        self.cloud.answers[self.ANSWER] = {'name': 'graph', 'value': (
            f'watched_ns {watched_s}000000000\nelement a Idle 0\n'
            f'element b Discard 0\nconnection a 0 b 0 push {packets} 0\n')}

    def test_the_second_picture_has_rates(self):
        self.answer(1, 10)
        self.hides(self.page(self.PATH), 'class="rate"')
        self.answer(3, 1010)
        self.shows(self.page(self.PATH), '<svg', 'class="rate">500<')

    def test_a_guests_nonsense_is_an_error(self):
        self.cloud.answers[self.ANSWER] = {'name': 'graph', 'value': 'what'}
        self.shows(self.page(self.PATH, status=502), 'graph:1')

    def test_a_refusal_of_clickos_api_is_an_error(self):
        self.cloud.answers[self.ANSWER] = (409, {'error': {
            'code': 'dead-guest', 'message': 'the guest is dead'}})
        self.shows(self.page(self.PATH, status=502), 'the guest is dead')
