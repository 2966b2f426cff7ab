# SPDX-License-Identifier: Apache-2.0
"""The Content-Security-Policy of our pages."""

import base64
import hashlib
from html import parser
from unittest import mock

from django import http
from django.template import loader
from django.test import override_settings
from django.urls import reverse

from clickos_dashboard import content_security
from tests.unit.clickos_dashboard import cloud
from tests.unit.clickos_dashboard import hostile

_EVIL = '<script>evil()</script>'


class _Scripts(parser.HTMLParser):
    """Collects the scripts inside a page that a browser would run."""

    def __init__(self, page):
        super().__init__()
        self.found, self._is_script = [], False
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        names = dict(attrs)
        self._is_script = tag == 'script' and 'src' not in names \
            and names.get('type') != 'text/html'

    def handle_endtag(self, tag):
        self._is_script = False

    def handle_data(self, data):
        if self._is_script and data.strip():
            self.found.append(data)


def _source(script):
    digest = hashlib.sha256(script.encode()).digest()
    return f"'sha256-{base64.b64encode(digest).decode()}'"


def _sources(answer, directive='script-src'):
    """Return the sources of a directive of an answer's policy."""
    policy = answer[content_security.HEADER].split('; ')
    return next(each.split()[1:] for each in policy
                if each.split()[0] == directive)


class PolicyTest(hostile.HostileTest):

    def setUp(self):
        super().setUp()
        self.path = reverse('horizon:clickos:packages:upload')

    def test_each_page_runs_its_files_and_horizons_scripts_only(self):
        for path in (*hostile.addresses().values(), *hostile.tabs()):
            with self.subTest(path):
                answer = self.client.get(path)
                found = _sources(answer)
                self.assertEqual(
                    {"'self'", *map(_source, _Scripts(
                        answer.content.decode()).found)}, set(found))
                self.assertGreater(len(found), 3)
                self.assertEqual(["'none'"], _sources(answer, 'object-src'))

    def test_a_script_that_horizons_page_lacks_is_not_allowed(self):
        page = self.client.get(self.path)
        known = set(_sources(page))
        render = http.HttpResponse(page.content + _EVIL.encode())
        middleware = content_security.Middleware(lambda request: render)
        answer = middleware(page.wsgi_request)
        self.assertEqual(known, set(_sources(answer)))

    def test_horizons_page_is_made_once(self):
        page = self.client.get(self.path)
        middleware = content_security.Middleware(
            lambda request: http.HttpResponse(page.content))
        with mock.patch.object(loader, 'render_to_string', autospec=True,
                               side_effect=loader.render_to_string) as made:
            for _again in range(3):
                middleware(page.wsgi_request)
        self.assertEqual(1, made.call_count)

    def test_a_site_adds_sources(self):
        with override_settings(
                STATIC_URL='https://files.example/static/',
                WEBSSO_DEFAULT_REDIRECT_LOGOUT='https://login.example/out',
                CLICKOS_CONTENT_SOURCES={'img-src': ['https://a.example'],
                                         'frame-src': ['https://b.example']}):
            text = content_security.policy()
        self.shows(text, "script-src 'self' https://files.example",
                   "form-action 'self' https://login.example",
                   'data: https://a.example', 'frame-src https://b.example')

    def test_the_picture_keeps_its_own(self):
        answer = self.client.get(reverse('horizon:clickos:guests:graph',
                                         args=(cloud.SERVER,)))
        self.assertEqual(["'none'"], _sources(answer, 'default-src'))
        self.assertEqual(["'unsafe-inline'"], _sources(answer, 'style-src'))

    def test_horizons_own_pages_are_as_before(self):
        answer = self.client.get(reverse('horizon:settings:user:index'))
        self.assertEqual(200, answer.status_code)
        self.assertNotIn(content_security.HEADER, answer)
