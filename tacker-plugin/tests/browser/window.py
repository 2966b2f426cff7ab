# SPDX-License-Identifier: Apache-2.0
"""A browser on pages that Django serves from this process."""

import os
import sys

from clickos_lab import axe
from clickos_lab import waits
from django.contrib.staticfiles import handlers
from django.test import override_settings
from django.test import testcases
from selenium import webdriver
from selenium.webdriver.chrome import service
from selenium.webdriver.common import by

from tests.unit.clickos_dashboard import hostile

_HOST = '127.0.0.1'
_OPTIONS = ('--headless=new', '--no-sandbox', '--no-proxy-server',
            '--disable-dev-shm-usage', '--disable-gpu',
            '--window-size=1280,900')
_PATIENCE_S = 40
#: Angular has read the page, and every script of the page has run.
_READY = '''
return document.readyState === 'complete' && window.angular !== undefined
  && angular.element(document.body).injector() !== undefined
  && jQuery.active === 0;
'''
#: All at once, since the page may replace an element that was found.
_CLICK = '''
const found = document.querySelector(arguments[0]);
if (found) { found.click(); }
return found !== null;
'''
#: The pages have no styles of Horizon. Without this one a table has boxes
#: that have no name and that no user sees.
_DRESS = '''
const sheet = new CSSStyleSheet();
sheet.replaceSync('.themable-checkbox input[type=checkbox] {display: none}');
document.adoptedStyleSheets = [sheet];
'''
#: As typing does; a field of another tab cannot be typed into.
_FILL = '''
const field = document.querySelector(arguments[0]);
field.value = arguments[1];
field.dispatchEvent(new Event('input', {bubbles: true}));
'''


class _Server(testcases.ThreadedWSGIServer):
    """Says nothing of connections that the browser keeps and never uses."""

    def handle_error(self, request, client_address):
        """Report other errors."""
        if not isinstance(sys.exception(), TimeoutError):
            super().handle_error(request, client_address)


class _ServerThread(testcases.LiveServerThread):

    server_class = _Server


class BrowserTest(hostile.HostileTest):
    """Opens pages of the hostile cloud as a tenant's browser does.

    :ivar driver: Selenium's
    """

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.enterClassContext(override_settings(ALLOWED_HOSTS=[_HOST]))
        cls._server = _ServerThread(
            _HOST, handlers.StaticFilesHandler, connections_override={})
        cls._server.daemon = True
        cls._server.start()
        cls.addClassCleanup(cls._server.terminate)
        cls._server.is_ready.wait()
        if cls._server.error:
            raise cls._server.error
        options = webdriver.ChromeOptions()
        options.binary_location = '/usr/bin/chromium'
        for option in _OPTIONS:
            options.add_argument(option)
        options.set_capability('goog:loggingPrefs', {'browser': 'ALL'})
        # The program of Debian; Selenium's manager would download one.
        os.environ['SE_OFFLINE'] = 'true'
        cls.driver = webdriver.Chrome(
            options, service.Service('/usr/bin/chromedriver'))
        cls.addClassCleanup(cls.driver.quit)

    def setUp(self):
        super().setUp()
        # A page asks again and again; the next test has another cloud.
        self.addCleanup(self.driver.get, 'about:blank')

    def open(self, path):
        """Open a page, and wait until Angular has read it."""
        self.driver.get(f'http://{_HOST}:{self._server.port}{path}')
        self.until(lambda: self.script(_READY), f'{path} is not ready')

    def script(self, text, *arguments):
        """Run a script on the page; return what it returns."""
        return self.driver.execute_script(text, *arguments)

    def click(self, selector):
        """Click an element as soon as there is one.

        The pages have no styles of Horizon, so symbols have no size.
        """
        self.until(lambda: self.script(_CLICK, selector), f'no {selector}')

    def see(self, selector):
        """Wait for an element; return it."""
        return self.until(lambda: self._found(selector), f'no {selector}')[0]

    def until(self, condition, what):
        """Wait for a condition about the page, and return its value."""
        return waits.until(self.driver, condition, what, _PATIENCE_S, 0.05)

    def errors(self):
        """Return the errors that the browser has logged since the last call.

        A script that the policy stops is one.
        """
        return [entry['message'] for entry in self.driver.get_log('browser')
                if entry['level'] == 'SEVERE']

    def text(self, selector):
        """Return the text of an element; nothing if it does not exist."""
        return self.script(
            'const e = document.querySelector(arguments[0]);'
            ' return e ? e.textContent : ""', selector)

    def fill(self, selector, text):
        """Type a text in place of what a field holds."""
        self.see(selector)
        self.script(_FILL, selector, text)

    def audit(self):
        """Return what axe-core finds on the page: [(rule, place)]."""
        self.script(_DRESS)
        return axe.audit(self.driver)

    def _found(self, selector):
        return self.driver.find_elements(by.By.CSS_SELECTOR, selector)
