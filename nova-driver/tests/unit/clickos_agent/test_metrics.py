# SPDX-License-Identifier: Apache-2.0
"""Figures for Prometheus, over HTTP, from a cosmosd double."""

import pathlib
import re
from urllib import request

import cosmos_client
import fixtures
from prometheus_client.parser import text_string_to_metric_families
import testtools

from clickos_agent import metrics
from clickos_agent import rpc
from tests.unit import cosmosd

_OPERATOR = pathlib.Path(__file__).parents[4] / 'docs/operator'
UUID = '11111111-2222-4333-8444-555555555555'


class MetricsTest(testtools.TestCase):

    def setUp(self):
        super().setUp()
        self.useFixture(fixtures.FakeLogger())
        self.cosmosd = self.useFixture(cosmosd.FakeCosmosd())
        self.cosmosd.guests[UUID] = {'uuid': UUID, 'state': 'running',
                                     'held': True}
        self.client = cosmos_client.CosmosClient(self.cosmosd.path, 60)
        endpoint = metrics.Endpoint(self.client, '127.0.0.1', 0)
        endpoint.start()
        self.port = endpoint.port
        self.addCleanup(endpoint.wait)
        self.addCleanup(endpoint.stop)

    def scrape(self):
        with request.urlopen(f'http://127.0.0.1:{self.port}/metrics',
                             timeout=60) as answer:
            return answer.read().decode()

    def test_cosmosds_figures(self):
        self.cosmosd.host_faults = [{'part': 'valed', 'reason': 'away'}]
        text = self.scrape()
        for line in ('clickos_cosmosd_up 1.0',
                     'clickos_cosmosd_memory_used_mib 64.0',
                     'clickos_cosmosd_guests{state="running"} 1.0',
                     'clickos_cosmosd_guests_held 1.0',
                     'clickos_cosmosd_faults{part="valed"} 1.0'):
            self.assertIn(line, text)

    def test_the_operators_files_name_metrics_that_exist(self):
        self.cosmosd.host_faults = [{'part': 'valed', 'reason': 'away'}]
        named = set()
        for file in ('prometheus-alerts.yaml', 'grafana-dashboard.json'):
            with open(_OPERATOR / file) as text:
                named.update(re.findall(
                    r'\bclickos_(?:agent|cosmosd)_\w+', text.read()))
        self.assertGreater(len(named), 5)
        known = {name for metric in text_string_to_metric_families(
            self.scrape()) for name in (metric.name, f'{metric.name}_total',
                                        f'{metric.name}_bucket')}
        self.assertEqual(set(), named - known)

    def test_builds(self):
        text = self.scrape()
        self.assertRegex(text, r'clickos_agent_build_info{version="[^"]+"} 1')
        self.assertIn('clickos_cosmosd_build_info{', text)

    def test_cosmosd_away(self):
        self.cosmosd.stop()
        text = self.scrape()
        self.assertIn('clickos_cosmosd_up 0.0', text)
        self.assertNotIn('memory', text)

    def test_calls(self):
        endpoint = rpc.Endpoint(self.client)
        for server_id in (UUID, 'x'):
            # The method has a context before it. pylint: disable-next=E1124
            endpoint.handler_list({}, server_id=server_id)
        text = self.scrape()
        for code in ('ok', 'no-such-guest'):
            self.assertIn(f'clickos_agent_calls_total{{code="{code}",'
                          'method="handler_list"}', text)

    def test_no_endpoint_without_a_port(self):
        endpoint = metrics.Endpoint(self.client, '127.0.0.1', None)
        for step in (endpoint.start, endpoint.stop, endpoint.wait):
            step()
        self.assertIsNone(endpoint._server)
