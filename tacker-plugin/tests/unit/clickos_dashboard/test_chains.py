# SPDX-License-Identifier: Apache-2.0
"""The pages of chains, on networking-sfc's HTTP."""

import pathlib
import tempfile
import types
from unittest import mock
import uuid

from django.urls import reverse
from openstack_auth import policy
from openstack_dashboard import api

from tests.unit.clickos_dashboard import base
from tests.unit.clickos_dashboard import cloud

CHAIN = '77777777-7777-4777-8777-777777777777'
#: A flow classifier.
RULE = '78787878-7777-4777-8777-777777777777'
INDEX = reverse('horizon:clickos:chains:index')
CREATE = reverse('horizon:clickos:chains:create')
DETAIL = reverse('horizon:clickos:chains:detail', args=(CHAIN,))
INSERT = reverse('horizon:clickos:chains:insert', args=(CHAIN,))
CHANGE = reverse('horizon:clickos:chains:rule', args=(CHAIN, RULE))
COUNTERS = reverse('horizon:clickos:chains:counters', args=(CHAIN,))
_SFC = '/v2.0/sfc/'
_COUNTED = {'packets': 9, 'bytes': 900, 'dropped': 1}


def group(name):
    """Return the id of a hop's group."""
    return str(uuid.uuid5(uuid.NAMESPACE_DNS, name))


def answers(hops=('fw', 'nat'), name='web'):
    """Return Neutron's answers for one chain."""
    return {
        f'GET {_SFC}port_chains': {'port_chains': [{
            'id': CHAIN, 'name': name, 'description': 'clickos chain',
            'port_pair_groups': [group(hop) for hop in hops],
            'flow_classifiers': [],
            'chain_parameters': {'symmetric': True}}]},
        f'GET {_SFC}port_pair_groups': {'port_pair_groups': [
            {'id': group(hop), 'name': hop, 'description': '',
             'port_pairs': ['pair']} for hop in hops]},
        f'PUT {_SFC}port_chains/{CHAIN}': {'port_chain': {'id': CHAIN}},
        f'GET {_SFC}port_pairs': {'port_pairs': [
            {'id': 'pair', 'ingress': 'p1', 'egress': 'p2'}]},
        **{f'GET {_SFC}port_pair_groups/{group(hop)}': {'port_pair_group': {
            'id': group(hop), 'name': hop, 'description': '',
            'port_pairs': []}} for hop in hops},
        f'GET /v1/chains/{CHAIN}': {'chain': {
            **_COUNTED, 'hops': [{**_COUNTED, 'pairs': 1, 'live_pairs': 1}
                                 for _hop in hops]}}}


def with_rules(found, *flows):
    """Let the chain of answers() have flow classifiers."""
    found[f'GET {_SFC}port_chains']['port_chains'][0][
        'flow_classifiers'] = [flow['id'] for flow in flows]
    found[f'GET {_SFC}flow_classifiers'] = {'flow_classifiers': list(flows)}
    for flow in flows:
        found[f'GET {_SFC}flow_classifiers/{flow["id"]}'] = {
            'flow_classifier': {'description': 'clickos chain', **flow}}


class ChainsTest(base.PageTest):

    def setUp(self):
        super().setUp()
        self.cloud.answers.update(answers())

    def new_groups(self):
        """Return the groups of the last update of the chain."""
        method, path, body = self.cloud.changes[-1]
        self.assertEqual(('PUT', f'{_SFC}port_chains/{CHAIN}'),
                         (method, path))
        return body['port_chain']['port_pair_groups']

    def test_a_dragged_order_is_one_request(self):
        path = reverse('horizon:clickos:chains:order', args=(CHAIN,))
        wanted = [group('nat'), group('fw')]
        answer = self.client.post(path, {'hop': wanted})
        self.assertEqual(200, answer.status_code, answer.content)
        self.assertEqual(wanted, self.new_groups())
        self.cloud.changes.clear()
        for hops in ([group('fw')], [group('fw'), group('fw')], []):
            answer = self.client.post(path, {'hop': hops})
            self.assertEqual(409, answer.status_code)
            self.assertIn('other hops by now', answer.json()['error'])
        self.assertEqual([], self.cloud.changes)
        self.assertEqual(405, self.client.get(path).status_code)

    def test_a_dragged_order_needs_a_csrf_token(self):
        self.client.handler.enforce_csrf_checks = True
        self.client.post(reverse('horizon:clickos:chains:order',
                                 args=(CHAIN,)), {'hop': [group('nat')]})
        self.assertEqual([], self.cloud.changes)

    def test_the_list(self):
        self.shows(self.page(INDEX), 'web', 'fw → nat')

    def test_an_empty_list_tells_what_to_do(self):
        self.cloud.answers[f'GET {_SFC}port_chains'] = {'port_chains': []}
        self.shows(self.page(INDEX), 'There is no chain yet')

    def test_neutron_that_refuses_is_told(self):
        self.cloud.answers[f'GET {_SFC}port_chains'] = (404, {})
        self.shows(self.page(INDEX), 'Neutron does not list chains')

    def test_the_page_of_a_chain(self):
        self.shows(self.page(DETAIL), 'fw', 'nat', 'Move up', 'Remove hop',
                   COUNTERS)

    def test_another_projects_chain_leads_back_to_the_list(self):
        for name in ('detail', 'insert'):
            path = reverse(f'horizon:clickos:chains:{name}',
                           args=(str(uuid.uuid4()),))
            self.assertRedirects(self.client.get(path), INDEX,
                                 fetch_redirect_response=False)

    def test_counters(self):
        answer = self.client.get(COUNTERS).json()
        self.assertEqual((9, 2), (answer['counters']['packets'],
                                  len(answer['counters']['hops'])))
        self.cloud.answers[f'GET /v1/chains/{CHAIN}'] = (409, {'error': {
            'code': 'not-active', 'message': 'start the servers'}})
        answer = self.client.get(COUNTERS)
        self.assertEqual((502, 'start the servers'),
                         (answer.status_code, answer.json()['error'][:17]))

    def test_hops_are_moved_and_removed(self):
        for action, hop, wanted in (
                ('up', 'nat', ['nat', 'fw']), ('down', 'fw', ['nat', 'fw']),
                ('remove', 'fw', ['nat'])):
            self.client.post(DETAIL, {'action':
                                      f'hops__{action}__{group(hop)}'})
            self.assertEqual([group(each) for each in wanted],
                             self.new_groups())

    def test_the_only_hop_stays(self):
        self.cloud.answers.update(answers(('fw',)))
        self.hides(self.page(DETAIL), 'Move up', 'Move down', 'Remove hop')

    def test_actions_that_neutron_refuses_are_not_shown(self):
        self.shows(self.page(INDEX), 'Create chain', 'Delete chain')
        real = policy.check
        actions = {'create_port_chain': ('Create chain',),
                   'delete_port_chain': ('Delete chain',),
                   'create_port_pair': ('Create chain', 'Insert hop'),
                   'create_flow_classifier': ('Create chain',
                                              'Change rule'),
                   'update_port_chain': ('Insert hop', 'Remove hop',
                                         'Move up', 'Move down',
                                         'Change rule')}
        with_rules(self.cloud.answers, {'id': RULE})
        self.shows(self.page(DETAIL), 'Change rule')
        for refused, hidden in actions.items():
            with self.subTest(refused), mock.patch.object(
                    policy, 'check', autospec=True,
                    side_effect=lambda rules, request, target=None: all(
                        name != refused for _service, name in rules)
                    and real(rules, request, target)):
                self.hides(self.page(INDEX) + self.page(DETAIL), *hidden)

    def test_a_reader_of_strict_rules_changes_nothing(self):
        """The operator's file tightens what Neutron lets any role do."""
        folder = self.enterContext(tempfile.TemporaryDirectory())
        (pathlib.Path(folder) / 'neutron_policy.yaml').write_text(''.join(
            f'{verb}_port_chain: role:member\n'
            for verb in ('create', 'update', 'delete')))
        with mock.patch.object(policy, '_BASE_PATH', folder):
            policy.reset()
            self.addCleanup(policy.reset)
            self._setup_user(roles=[{'id': '3', 'name': 'reader'}])
            with_rules(self.cloud.answers, {'id': RULE})
            self.hides(self.page(INDEX) + self.page(DETAIL), 'Create chain',
                       'Delete chain', 'Insert hop', 'Remove hop', 'Move',
                       'Change rule')
            self.client.post(INDEX, {'action': f'chains__delete__{CHAIN}'})
            self.assertEqual([], self.cloud.changes)

    def test_a_refusal_of_neutron_is_told_in_words(self):
        self.cloud.answers[f'PUT {_SFC}port_chains/{CHAIN}'] = (403, {
            'NeutronError': {'type': 'x', 'detail': '',
                             'message': 'disallowed by policy'}})
        answer = self.client.post(DETAIL, {
            'action': f'hops__remove__{group("fw")}'}, follow=True)
        self.shows(answer.content.decode(),
                   'Remove hop, fw: disallowed by policy')

    def test_a_chain_is_found_by_its_hops(self):
        self.shows(self.page(INDEX + '?chains_search=NAT'), 'web')
        self.shows(self.page(INDEX + '?chains_search=ips'),
                   'Nothing in the list has this')

    def test_a_chain_is_deleted(self):
        self.client.post(INDEX, {'action': f'chains__delete__{CHAIN}'})
        self.assertIn(('DELETE', f'{_SFC}port_chains/{CHAIN}', None),
                      self.cloud.changes)


class FormsTest(base.PageTest):

    def setUp(self):
        super().setUp()
        self.cloud.answers.update(answers())
        self.cloud.answers['GET /v2.0/ports'] = {'ports': [
            {'id': f'p{n}', 'name': f'VDU1-0-{n}', 'mac_address': f'mac{n}',
             'device_id': cloud.SERVER, 'project_id': self.tenant.id,
             'description': f'clickos-vnf:{cloud.VNF}'} for n in (1, 2)]}
        for n in (1, 2):
            port = self.cloud.answers['GET /v2.0/ports']['ports'][n - 1]
            self.cloud.answers[f'GET /v2.0/ports/p{n}'] = {'port': port}
        for kind in ('port_pair', 'port_pair_group', 'port_chain',
                     'flow_classifier'):
            self.cloud.answers[f'POST {_SFC}{kind}s'] = (
                201, {kind: {'id': f'new-{kind}'}})
        server = types.SimpleNamespace(addresses={'net': [
            {'OS-EXT-IPS-MAC:mac_addr': 'mac2'},
            {'OS-EXT-IPS-MAC:mac_addr': 'mac1'}]})
        patch = mock.patch.object(api.nova, 'server_get', autospec=True,
                                  return_value=server)
        patch.start()
        self.addCleanup(patch.stop)

    def create(self, **values):
        """Send the form of a new chain."""
        return self.client.post(CREATE, {
            'name': 'new', 'network': self.networks.first().id,
            'hop_1': cloud.VNF, 'symmetric': 'on', **values})

    def made(self, kind):
        """Return what was made of a kind."""
        return [body[kind] for method, path, body in self.cloud.changes
                if (method, path) == ('POST', f'{_SFC}{kind}s')]

    def test_a_chain_is_made_of_a_vnf(self):
        self.create(protocol='tcp', source='10.0.0.0/24',
                    destination_port='80:90')
        pair, = self.made('port_pair')
        self.assertEqual(('p2', 'p1'), (pair['ingress'], pair['egress']))
        flow, = self.made('flow_classifier')
        self.assertEqual(
            ('tcp', '10.0.0.0/24', 80, 90),
            (flow['protocol'], flow['source_ip_prefix'],
             flow['destination_port_range_min'],
             flow['destination_port_range_max']))
        chain, = self.made('port_chain')
        self.assertEqual((['new-port_pair_group'], {'symmetric': True}),
                         (chain['port_pair_groups'],
                          chain['chain_parameters']))

    def test_what_is_wrong_stands_at_its_field(self):
        for values, wanted in (
                ({'destination_port': '80', 'protocol': ''}, 'Ports need'),
                ({'source_port': '90:80', 'protocol': 'udp'},
                 'the lower first'),
                ({'source_port': 'x'}, 'Expected a port'),
                ({'source': '10.0.0.300'}, 'Incorrect format'),
                ({'source': '10.0.0.3', 'destination': '::/0'},
                 'of one family'),
                ({'hop_2': cloud.VNF}, 'comes twice'),
                ({'hop_1': ''}, 'required')):
            self.shows(self.create(**values).content.decode(), wanted)
        self.assertEqual([], self.cloud.changes)

    def test_a_refusal_is_told_and_leaves_nothing(self):
        self.cloud.answers[f'POST {_SFC}port_chains'] = (409, {
            'NeutronError': {'type': 'x', 'detail': '',
                             'message': 'hosts differ'}})
        self.shows(self.create().content.decode(), 'hosts differ')
        gone = [path for method, path, _body in self.cloud.changes
                if method == 'DELETE']
        self.assertEqual([f'{_SFC}flow_classifiers/new-flow_classifier',
                          f'{_SFC}port_pair_groups/new-port_pair_group',
                          f'{_SFC}port_pairs/new-port_pair'], gone)

    def test_a_hop_is_inserted(self):
        self.client.post(INSERT, {'vnf': cloud.VNF, 'place': '1'})
        _method, _path, body = self.cloud.changes[-1]
        self.assertEqual([group('fw'), 'new-port_pair_group', group('nat')],
                         body['port_chain']['port_pair_groups'])


class RuleTest(base.PageTest):
    """The rule of a live chain, changed by a form."""

    flow = {'id': RULE, 'ethertype': 'IPv4', 'protocol': 'tcp',
            'source_ip_prefix': '10.0.0.0/24',
            'destination_port_range_min': 80,
            'destination_port_range_max': 80,
            'logical_source_port': 'a-port', 'l7_parameters': {}}
    form = {'protocol': 'tcp', 'source': '10.0.0.0/24',
            'destination_port': '80'}

    def setUp(self):
        super().setUp()
        self.cloud.answers.update(answers())
        self.rules(self.flow)
        self.cloud.answers[f'POST {_SFC}flow_classifiers'] = (
            201, {'flow_classifier': {'id': 'new'}})

    def rules(self, *flows):
        with_rules(self.cloud.answers, *flows)

    def change(self, **values):
        """Send the form; return the page that comes."""
        return self.client.post(CHANGE, {**self.form, **values},
                                follow=True).content.decode()

    def changes(self):
        """Return (values of the new rule, rules of the chain, requests)."""
        made, = [body['flow_classifier'] for method, _path, body
                 in self.cloud.changes if method == 'POST']
        put, = [body['port_chain'] for method, _path, body
                in self.cloud.changes if method == 'PUT']
        for name in 'name', 'description':
            made.pop(name)
        return made, put['flow_classifiers'], [
            method for method, *_ in self.cloud.changes]

    def test_the_form_has_the_values_in_force(self):
        self.shows(self.page(CHANGE), 'value="10.0.0.0/24"', 'value="80"',
                   '<option value="tcp" selected>')

    def test_a_rule_is_replaced_by_one_request(self):
        self.shows(self.change(destination_port='443:444'),
                   'Changed the rule of')
        self.assertEqual((
            {'ethertype': 'IPv4', 'protocol': 'tcp',
             'source_ip_prefix': '10.0.0.0/24',
             'destination_port_range_min': 443,
             'destination_port_range_max': 444,
             'logical_source_port': 'a-port'},
            ['new'], ['POST', 'PUT', 'DELETE']), self.changes())

    def test_the_other_rules_of_the_chain_stay(self):
        other = '79797979-7777-4777-8777-777777777777'
        self.rules({'id': other, 'ethertype': 'IPv6'}, self.flow)
        self.shows(self.page(DETAIL), CHANGE, f'/rules/{other}')
        self.change(protocol='udp')
        self.assertEqual([other, 'new'], self.changes()[1])
        self.assertNotIn(other, str(self.cloud.changes[-1]))

    def test_a_rule_without_addresses_keeps_its_family(self):
        self.rules({'id': RULE, 'ethertype': 'IPv6', 'protocol': 'sctp',
                    'source_ip_prefix': 'fd00::/8'})
        self.shows(self.page(CHANGE), '<option value="sctp" selected>')
        for form, family in (({'source': ''}, 'IPv6'),
                             ({'source': '10.0.0.0/8'}, 'IPv4'),
                             ({'destination': '::/0', 'source': ''},
                              'IPv6')):
            self.cloud.changes.clear()
            self.change(protocol='sctp', destination_port='', **form)
            made, _rules, _methods = self.changes()
            self.assertEqual((family, 'sctp'),
                             (made['ethertype'], made['protocol']))

    def test_the_same_values_change_nothing(self):
        self.shows(self.change(), 'Every value is as before')
        self.assertEqual([], self.cloud.changes)

    def test_what_is_wrong_stands_at_its_field(self):
        for values, wanted in (({'protocol': 'icmp'}, 'Ports need'),
                               ({'protocol': 'x'}, 'not one of the'),
                               ({'source': 'x'}, 'Incorrect format'),
                               ({'destination': '::1'}, 'of one family')):
            self.shows(self.change(**values), wanted)
        self.assertEqual([], self.cloud.changes)

    def test_a_refusal_is_told_and_leaves_nothing(self):
        self.cloud.answers[f'PUT {_SFC}port_chains/{CHAIN}'] = (409, {
            'NeutronError': {'type': 'x', 'detail': '',
                             'message': 'hosts differ'}})
        self.shows(self.change(protocol='udp'), 'hosts differ')
        self.assertEqual(
            ('DELETE', f'{_SFC}flow_classifiers/new', None),
            self.cloud.changes[-1])

    def test_a_rule_that_the_chain_does_not_have(self):
        self.rules({**self.flow, 'id': str(uuid.uuid4())})
        for answer in (self.client.get(CHANGE),
                       self.client.post(CHANGE, self.form)):
            self.assertRedirects(answer, DETAIL,
                                 fetch_redirect_response=False)
        self.assertEqual([], self.cloud.changes)
