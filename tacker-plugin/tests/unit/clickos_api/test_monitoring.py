# SPDX-License-Identifier: Apache-2.0
"""The dashboard and the alert rules that operators get."""

import json
import pathlib
import re

import prometheus_client
from prometheus_client.parser import text_string_to_metric_families
import yaml

from clickos_api import metrics
from tacker_clickos import troubles
from tests.unit.clickos_api import base

_OPERATOR = pathlib.Path(__file__).parents[4] / 'docs/operator'
_SEVERITIES = {'critical', 'warning', 'info'}


def _alerts():
    text = (_OPERATOR / 'prometheus-alerts.yaml').read_text()
    groups = yaml.safe_load(text)['groups']
    return [rule for group in groups for rule in group['rules']]


def _panels():
    text = (_OPERATOR / 'grafana-dashboard.json').read_text()
    return json.loads(text)['panels']


class MonitoringTest(base.TestCase):

    def known(self):
        """Return the names of all metrics of clickos-api and Tacker."""
        registry = prometheus_client.CollectorRegistry()
        registry.register(metrics.REGISTRY)
        registry.register(metrics.States(
            self.app.extensions['clickos']._service))
        self.call('GET', self.handlers())
        self.put('allow all')
        texts = [prometheus_client.generate_latest(each).decode()
                 for each in (registry, troubles.REGISTRY)]
        return {name for text in texts
                for metric in text_string_to_metric_families(text)
                for name in (metric.name, f'{metric.name}_total',
                             f'{metric.name}_bucket')}

    def test_each_metric_exists(self):
        expressions = [rule['expr'] for rule in _alerts()] + [
            target['expr'] for panel in _panels()
            for target in panel['targets']]
        named = {name for text in expressions for name in re.findall(
            r'\bclickos_(?:api|tacker)_\w+', text)}
        self.assertGreater(len(named), 3)
        self.assertEqual(set(), named - self.known())

    def test_clients_make_no_labels(self):
        def samples():
            return {(each.name, *each.labels.values())
                    for family in metrics.REGISTRY.collect()
                    for each in family.samples}
        self.call('GETS', '/v1/catalog')
        before = samples()
        self.assertIn(('clickos_api_requests_total', 'other', 'unknown',
                       '405'), before)
        for number in range(9):
            self.call('GET' + 'S' * number * 2, '/v1/catalog')
            self.call('GETS', f'/v1/x{number}')
            self.call('GETS', f'/x{number}')
        new = {labels[1:] for labels in samples() - before}
        self.assertLessEqual({labels[0] for labels in new}, {'GET', 'other'})
        self.assertLessEqual({labels[1] for labels in new},
                             {'v1.list_catalog', 'unknown'})

    def test_alerts_are_whole(self):
        names = [rule['alert'] for rule in _alerts()]
        self.assertEqual(len(names), len(set(names)))
        for rule in _alerts():
            self.assertRegex(rule['for'], r'^\d+[mhd]$')
            self.assertIn(rule['labels']['severity'], _SEVERITIES)
            self.assertEqual({'summary', 'description'},
                             set(rule['annotations']))
            for opening, closing in ('()', '[]', '{}'):
                self.assertEqual(rule['expr'].count(opening),
                                 rule['expr'].count(closing), rule['expr'])

    def test_there_are_alerts_for_loops_drops_and_dead_daemons(self):
        text = ' '.join(rule['expr'] for rule in _alerts())
        for metric in ('vale_chain_loops_total', 'vale_port_drops_total',
                       'up{', 'clickos_cosmosd_up'):
            self.assertIn(metric, text)

    def test_panels_have_places_of_their_own(self):
        places = [tuple(panel['gridPos'].values()) for panel in _panels()]
        self.assertEqual(len(places), len(set(places)))
