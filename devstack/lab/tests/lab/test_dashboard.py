# SPDX-License-Identifier: Apache-2.0
"""The running dashboard: login, sessions, pages, static files."""

import re
import unittest

import requests

from clickos_lab import paths
from clickos_lab import settings

_PAGES = ('/clickos/', '/clickos/packages/', '/clickos/vnfs/')
_TOKEN = re.compile(r'name="csrfmiddlewaretoken" value="([^"]+)"')


class DashboardTest(unittest.TestCase):

    def setUp(self):
        super().setUp()
        self.settings = settings.Settings.load(paths.State())
        self.browser = requests.Session()
        self.browser.trust_env = False
        self.addCleanup(self.browser.close)

    def get(self, path):
        return self.browser.get(self.settings.url('horizon', path))

    def log_in(self, password, token=None):
        url = self.settings.url('horizon', '/auth/login/')
        form = self.browser.get(url).text
        return self.browser.post(url, headers={'Referer': url}, data={
            'csrfmiddlewaretoken': token or _TOKEN.search(form)[1],
            'username': 'demo', 'password': password, 'domain': 'default',
            'region': 'default', 'auth_type': 'credentials'})

    def test_a_tenant_logs_in_and_sees_each_panel(self):
        self.log_in(self.settings.passwords['demo'])
        for path in _PAGES:
            answer = self.get(path)
            self.assertEqual((200, self.settings.url('horizon', path)),
                             (answer.status_code, answer.url))
            self.assertIn('Network functions', answer.text)
            self.assertNotIn('Error: ', answer.text)

    def test_pages_need_a_login(self):
        self.log_in('wrong')
        for path in _PAGES:
            self.assertIn('/auth/login/?next=', self.get(path).url)

    def test_a_login_needs_its_token(self):
        answer = self.log_in(self.settings.passwords['demo'], 'a' * 64)
        self.assertIn('/auth/login/', answer.url)
        self.assertIn('/auth/login/?next=', self.get(_PAGES[0]).url)

    def test_static_files_are_compressed_and_served(self):
        text = self.get('/auth/login/').text
        sheets = re.findall(r'href="(/static/[^"]+\.css)"', text)
        self.assertTrue(sheets)
        for path in (*sheets, '/static/clickos/graph.js'):
            answer = self.get(path)
            self.assertEqual(200, answer.status_code, path)
            self.assertRegex(answer.headers['Content-Type'],
                             'css|javascript')
        self.assertEqual(404, self.get('/static/../settings.json'
                                       ).status_code)
