# SPDX-License-Identifier: Apache-2.0
"""No page says at which addresses the dashboard asks the services."""

from unittest import mock

from django.urls import reverse
from openstack_dashboard import api
import requests

from clickos_client import chains as client_chains
from clickos_dashboard import exceptions
from tests.unit.clickos_dashboard import base
from tests.unit.clickos_dashboard import cloud
from tests.unit.clickos_dashboard import test_chains
from tests.unit.clickos_dashboard import test_foreign_ids

_SECRET = 'inside.example'
_TEXT = f"HTTPConnectionPool(host='{_SECRET}', port=1): Max retries exceeded"
_FAULTS = (requests.exceptions.ConnectionError, requests.exceptions.Timeout,
           requests.exceptions.SSLError,
           requests.exceptions.ChunkedEncodingError)
_HOSTS = (_SECRET, cloud.TACKER, cloud.CLICKOS, 'ConnectionPool',
          *(each.removeprefix('http://')
            for each in (cloud.TACKER, cloud.CLICKOS)))


class AwayTest(base.PageTest):

    def cut_off(self, fault):
        """Let each request of ours fail; Horizon's clients have their own.
        """
        send = self.cloud.send

        def fail(request, **options):
            if not request.url.startswith((cloud.TACKER, cloud.CLICKOS)) \
                    and '/v2.0/' not in request.url:
                return send(request, **options)
            raise fault(_TEXT)
        self.cloud.send = fail

    def places(self):
        own = {**test_foreign_ids.OWN, **test_foreign_ids.VALUES}
        for panel, name, names in test_foreign_ids.addresses():
            yield reverse(f'horizon:clickos:{panel}:{name}', kwargs={
                each: own[each] for each in names})

    def hides_all(self, answer, path):
        text = answer.content.decode()
        self.assertEqual([], [host for host in _HOSTS if host in text], path)

    def test_every_page_and_form(self):
        values = {'value': 'x', 'name': 'x', 'hop_1': cloud.VNF,
                  'network': self.networks.first().id, 'protocol': 'tcp',
                  'config': 'Idle;', 'server': cloud.SERVER, 'hop': 'x',
                  'server_id': cloud.SERVER}
        self.cut_off(_FAULTS[0])
        for path in self.places():
            for method in ('get', 'post'):
                answer = getattr(self.client, method)(path, values,
                                                      follow=True)
                self.hides_all(answer, f'{method} {path}')

    def test_each_kind_of_outage(self):
        traffic = reverse('horizon:clickos:overview:traffic')
        order = reverse('horizon:clickos:chains:order',
                        args=(test_chains.CHAIN,))
        for method, path, service in (
                ('get', f'{traffic}?server={cloud.SERVER}', 'clickos-api'),
                ('get', test_chains.COUNTERS, 'clickos-api'),
                ('post', order, 'Neutron')):
            for fault in _FAULTS:
                self.cut_off(fault)
                answer = getattr(self.client, method)(path)
                self.hides_all(answer, path)
                self.assertIn(service, answer.json()['error'])

    def test_a_service_that_answers_is_quoted(self):
        for error in (exceptions.TackerError(400, 'http://mine: not covered'),
                      client_chains.ChainError('http://mine')):
            self.assertIn('http://mine', exceptions.reason(error))
        self.assertNotIn(_SECRET, exceptions.reason(ValueError(_TEXT)))

    def test_a_launch_does_not_quote_neutrons_client(self):
        from neutronclient.common import exceptions as client_exceptions
        self.cloud.answers['POST /vnflcm/v1/vnf_instances'] = {
            'id': cloud.VNF}
        error = client_exceptions.ConnectionFailed(reason=_TEXT)
        path = reverse('horizon:clickos:vnfs:launch', args=(cloud.PACKAGE,))
        with mock.patch.object(api.neutron, 'network_create', autospec=True,
                               side_effect=error):
            answer = self.client.post(path, {
                'name': 'x', 'vim': 'vim-id', 'network_left': 'new',
                'prefix_left': '10.20.0.0/24', 'network_right': 'new',
                'prefix_right': '10.21.0.0/24'}, follow=True)
        self.hides_all(answer, path)
        self.shows(answer.content.decode(), 'does not answer')
