# SPDX-License-Identifier: Apache-2.0
"""The first page."""

import json
from unittest import mock

from django.urls import reverse
from openstack.compute.v2 import hypervisor
from openstack.network.v2 import agent
from openstack_dashboard import api

from clickos_dashboard.overview import traffic
from tests.unit.clickos_dashboard import base
from tests.unit.clickos_dashboard import cloud

INDEX = reverse('horizon:clickos:overview:index')
TRAFFIC = reverse('horizon:clickos:overview:traffic')


class OverviewTest(base.PageTest):

    def test_a_troubled_vnf_is_listed_with_its_reason(self):
        self.cloud.answers['GET /vnflcm/v1/vnf_lcm_op_occs'] = [
            cloud.operation(operationState='FAILED',
                            error={'detail': 'no host'})]
        self.shows(self.page(INDEX), 'Needs attention', 'edge', 'no host')

    def test_an_empty_project_is_told_what_to_do(self):
        for path in ('/vnfpkgm/v1/vnf_packages', '/vnflcm/v1/vnf_instances'):
            self.cloud.answers[f'GET {path}'] = []
        self.shows(self.page(INDEX), 'Upload a package to begin')

    def test_guests_have_rates_and_drops_are_troubles(self):
        page = self.page(INDEX)
        self.shows(page, f'data-url="{TRAFFIC}"',
                   f'data-server="{cloud.SERVER}"', 'dropped a second')
        self.cloud.answers['GET /vnflcm/v1/vnf_instances'] = [
            cloud.vnf(instantiatedVnfInfo=None)]
        self.hides(self.page(INDEX), 'data-server', 'clickos-rates')

    def host(self, **changes):
        return hypervisor.Hypervisor.existing(**{
            'hypervisor_hostname': 'rack-1', 'state': 'up',
            'status': 'enabled', 'running_vms': 2, 'memory_mb_used': 16,
            'memory_mb': 2048, 'service': {'host': 'compute1'}, **changes})

    def agent(self, **changes):
        return agent.Agent.existing(**{
            'host': 'compute1', 'alive': True, 'configurations': {
                'load': {'packets_per_s': 4711, 'dropped_per_s': 0}},
            **changes})

    def hosts(self, hosts, agents):
        """Return the page of an administrator of a cloud with such hosts."""
        with mock.patch.object(api.nova, 'hypervisor_list', autospec=True,
                               return_value=hosts), \
                mock.patch.object(api.neutron, 'agent_list', autospec=True,
                                  return_value=agents):
            self._setup_user(roles=[{'id': '1', 'name': 'admin'}])
            return self.page(INDEX)

    def test_hosts_are_for_administrators(self):
        self.hides(self.page(INDEX), 'clickos-hosts')
        other = self.host(hypervisor_hostname='others',
                          service={'host': 'compute9'})
        page = self.hosts([self.host(), other], [self.agent()])
        self.shows(page, 'rack-1', '<td>2</td>', '<td>16</td>', '2048',
                   '<td>4711</td><td>0</td>', '<td>up</td>')
        self.hides(page, 'others')

    def test_a_host_in_trouble_needs_attention(self):
        page = self.hosts(
            [self.host(state='down', status='disabled', service={
                'host': 'compute1', 'disabled_reason': 'valed: no answer'})],
            [self.agent(alive=False)])
        self.shows(page, 'rack-1: nova-compute does not answer',
                   'rack-1: disabled: valed: no answer',
                   'rack-1: clickos-agent does not answer')
        self.hides(page, '4711', '<td>up</td>')

    def test_an_administrator_without_hosts_is_told_what_to_do(self):
        self.shows(self.hosts([], []), 'Start clickos-agent')


class TrafficTest(base.PageTest):

    def ask(self, *servers, status=200):
        return json.loads(self.page(TRAFFIC, status, query_params={
            'server': servers}))

    def test_a_guest_has_the_sum_of_its_ports(self):
        (guest,) = self.ask(cloud.SERVER)['guests']
        (port,) = guest.pop('ports')
        self.assertEqual({'mac': 'fa:16:3e:00:00:01', 'rx_packets': 10,
                          'rx_bytes': 600, 'tx_packets': 20,
                          'tx_bytes': 1200, 'drops': 3}, port)
        del guest['at_ms']
        self.assertEqual({'id': cloud.SERVER, 'sent': 10, 'received': 20,
                          'dropped': 3}, guest)

    def test_a_guest_that_is_refused_does_not_hide_the_others(self):
        self.cloud.answers['GET /v1/servers/gone/ports'] = (404, {
            'error': {'code': 'no-such-server', 'message': 'not found'}})
        refused, guest = self.ask('gone', cloud.SERVER)['guests']
        self.assertEqual({'id': 'gone', 'error': 'not found'}, refused)
        self.assertEqual(10, guest['sent'])

    def test_an_answer_asks_for_few_guests(self):
        found = self.ask(*[cloud.SERVER] * (traffic.MOST + 1))
        self.assertEqual(traffic.MOST, len(found['guests']))

    def test_a_service_that_is_away_is_told(self):
        self.cloud.answers[f'GET /v1/servers/{cloud.SERVER}/ports'] = (
            503, {})
        self.assertIn('Service Unavailable',
                      self.ask(cloud.SERVER, status=502)['error'])


class FormsTest(base.PageTest):

    def test_each_form_is_a_page_and_a_modal_window(self):
        vnf = (cloud.VNF,)
        for name, args in (
                ('packages:upload', ()), ('vnfs:launch', (cloud.PACKAGE,)),
                ('vnfs:update', vnf), ('vnfs:scale', vnf),
                ('vnfs:handler', (*vnf, cloud.SERVER, 'fw.config'))):
            path = reverse(f'horizon:clickos:{name}', args=args)
            with self.subTest(name):
                self.shows(self.page(path), '<title>', '<form')
                window = self.page(
                    path, headers={'X-Requested-With': 'XMLHttpRequest'})
                self.shows(window, '<form', 'class="modal')
                self.hides(window, '<title>')
