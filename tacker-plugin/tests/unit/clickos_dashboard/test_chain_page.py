# SPDX-License-Identifier: Apache-2.0
"""The page of a chain: its packets, its hops, whose ports they have."""

import dataclasses
import types

from django.urls import reverse
from openstack_dashboard import api

from clickos_dashboard.api import chains as chains_api
from clickos_dashboard.chains import detail
from tests.unit.clickos_dashboard import base
from tests.unit.clickos_dashboard import project
from tests.unit.clickos_dashboard import test_chains

_SFC = project.SFC
CHAIN = test_chains.CHAIN
COUNTERS, DETAIL = test_chains.COUNTERS, test_chains.DETAIL


class ChainPageTest(base.PageTest):

    def setUp(self):
        super().setUp()
        project.Project(self).fill()

    def test_the_page_says_which_packets_and_whose_hops(self):
        chain = self.cloud.answers[f'GET {_SFC}port_chains'][
            'port_chains'][0]
        chain['flow_classifiers'] = [test_chains.RULE]
        self.cloud.answers[f'GET {_SFC}flow_classifiers'] = {
            'flow_classifiers': [{
                'id': test_chains.RULE, 'protocol': 'tcp',
                'source_ip_prefix': '10.1.0.0/24',
                'destination_port_range_min': 80,
                'destination_port_range_max': 90},
                {'id': 'other', 'protocol': 'icmp'}]}
        ids = reverse('horizon:clickos:vnfs:detail',
                      args=(project.key('vnf', 'ids'),))
        network = reverse('horizon:project:networks:detail',
                          args=(project.key('network', 'left'),))
        self.shows(self.page(DETAIL), f'<a href="{ids}">ids</a>',
                   f'<a href="{network}">left</a>',
                   'protocol=tcp,source-ip-prefix=10.1.0.0/24,'
                   'destination-port=80:90', 'answers return',
                   'data-ports="{0}/{1} {0}/{2}"'.format(
                       project.key('server', 'ids', 0),
                       project.mac('ids', 0, 'in'),
                       project.mac('ids', 0, 'out')), 'data-hop="2"')
        self.hides(self.page(DETAIL), 'icmp')
        chain['chain_parameters'] = {'symmetric': False}
        self.shows(self.page(DETAIL), 'answers go straight')

    def test_a_hop_of_a_guest_without_a_vnf_leads_to_the_guest(self):
        for port in api.neutron.port_list.return_value:
            port._apidict['description'] = ''
        guest = reverse('horizon:clickos:guests:detail',
                        args=(project.key('server', 'ids', 0),))
        self.shows(self.page(DETAIL), f'<a href="{guest}">ids</a>')

    def test_a_hop_that_is_a_vnf_leads_to_its_properties(self):
        update = reverse('horizon:clickos:vnfs:update',
                         args=(project.key('vnf', 'ids'),))
        self.shows(self.page(DETAIL), update)
        for port in api.neutron.port_list.return_value:
            port._apidict['description'] = ''
        self.hides(self.page(DETAIL), update, 'Update properties')

    def test_neutron_that_is_away_hides_only_its_part(self):
        api.neutron.port_list.side_effect = self.exceptions.neutron
        self.shows(self.page(DETAIL), 'Neutron does not list ports', 'ids',
                   COUNTERS)

    def test_a_long_chain_asks_for_all_ports_at_once(self):
        chain = chains_api.Chain(CHAIN, 'web', True, tuple(
            chains_api.Hop(str(n), 'x', False, False,
                           tuple(f'{n}-{at}' for at in range(32)))
            for n in range(20)))
        for wanted, queries in ((chain, {'project_id': 'p'}), (
                dataclasses.replace(chain, hops=chain.hops[:1]), {
                    'project_id': 'p', 'id': sorted(chain.hops[0].ports)})):
            api.neutron.port_list.reset_mock()
            request = types.SimpleNamespace(
                user=types.SimpleNamespace(tenant_id='p'))
            found = detail.read(request, wanted).hops
            self.assertEqual(len(wanted.hops), len(found))
            api.neutron.port_list.assert_called_once_with(request, **queries)
