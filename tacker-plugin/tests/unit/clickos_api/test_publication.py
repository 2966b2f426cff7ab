# SPDX-License-Identifier: Apache-2.0
"""What the service publishes: its WSGI entry point, options, rules."""

import importlib
import os
import sys
import tempfile
from unittest import mock

from oslo_config import cfg

from clickos_api import conf
from clickos_api.http import routes
from tests.unit.clickos_api import base


class PublicationTest(base.TestCase):
    """As a WSGI server and the sample generators see it."""

    def test_wsgi_module(self):
        path = self.conf.config_file[0]
        self.conf.reset()
        with mock.patch.dict(os.environ, {conf.FILES_VARIABLE: path}), \
                mock.patch.object(sys, 'argv', ['uwsgi']):
            wsgi = importlib.import_module('clickos_api.wsgi')
        self.addCleanup(sys.modules.pop, 'clickos_api.wsgi')
        self.assertEqual(1, self.conf.clickos_api.guest_timeout)
        client = wsgi.application.test_client()
        self.assertEqual(200, client.get('/healthcheck').status_code)
        self.assertEqual(401, client.get(self.handlers()).status_code)

    def test_every_own_option_has_help(self):
        groups = {group.name: opts for group, opts in conf.list_opts()}
        self.assertEqual({'clickos_api', 'neutron', 'nova', 'tacker'},
                         set(groups))
        for opt in groups['clickos_api']:
            self.assertGreater(len(opt.help.strip()), 24, opt.name)

    def test_former_names_of_options(self):
        """Files of the release before 1.0 are read as they are."""
        former = {'verdict_wait': 'change_wait_timeout',
                  'waiting_threads': 'max_waiting_http_threads',
                  'ownership_ttl': 'server_cache_ttl',
                  'settle_interval': 'pending_change_poll_interval'}
        with tempfile.NamedTemporaryFile('w', suffix='.conf') as file:
            file.write('[clickos_api]\n' + ''.join(
                f'{name} = 17\n' for name in former))
            file.flush()
            found = cfg.ConfigOpts()
            found.register_opts(conf.API_OPTS, group=conf.API_GROUP)
            found(['--config-file', file.name], project='test')
        for name in former.values():
            self.assertEqual(17, found.clickos_api[name], name)

    def test_services_do_not_wait_for_ever(self):
        self.assertEqual(10, self.conf.nova.timeout)

    def test_every_rule_says_what_it_is_for(self):
        rules = routes.list_rules()
        self.assertGreater(len(rules), 5)
        for rule in rules:
            self.assertTrue(rule.description.endswith('.'), rule.name)
            self.assertTrue(rule.operations, rule.name)
