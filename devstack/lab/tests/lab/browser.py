# SPDX-License-Identifier: Apache-2.0
"""A browser on the running dashboard."""

import os
import pathlib

from clickos_lab import axe
from clickos_lab.config import tls
from clickos_lab import paths
from clickos_lab import pictures
from clickos_lab import waits
from selenium import webdriver
from selenium.webdriver.chrome import service
from selenium.webdriver.common import action_chains
from selenium.webdriver.common import by
from selenium.webdriver.common import keys
from selenium.webdriver.support import select

WIDE, _NARROW, _HEIGHT = 1280, 800, 900
#: At which pages are judged, the usual one last.
WIDTHS = _NARROW, WIDE
_SIZE = f'{WIDE},{_HEIGHT}'
#: Debian's chromium leaves its sandbox to a user, and the tests are root.
_OPTIONS = ('--headless=new', '--no-sandbox', '--no-proxy-server',
            '--disable-dev-shm-usage', '--disable-gpu', '--hide-scrollbars')
#: A busy machine takes 40 s for the first launch.
_PATIENCE_S = 90
_MODAL = '.modal.in'
_FOCUSED = ('return document.activeElement'
            ' === document.querySelector(arguments[0])')


def _pin(settings):
    """Let the browser trust the lab's key and no other one."""
    if not settings.authority:
        return []
    pin = tls.pin(paths.State())
    return [f'--ignore-certificate-errors-spki-list={pin}']


class Browser:
    """A window, logged in as the tenant.

    :ivar faults: what axe-core found on the pages that were judged
    :param settings: the lab's
    :param pictures: folder for pictures, or None
    :param widths: of the window at which pages are judged
    """

    def __init__(self, settings, pictures=None, widths=WIDTHS):
        self._settings = settings
        self._pictures = pictures and pathlib.Path(pictures)
        self._widths = widths
        self.faults = []
        options = webdriver.ChromeOptions()
        options.binary_location = '/usr/bin/chromium'
        for option in (*_OPTIONS, *_pin(settings), f'--window-size={_SIZE}'):
            options.add_argument(option)
        options.set_capability('goog:loggingPrefs', {'browser': 'ALL'})
        # The program of Debian; Selenium's manager would download one.
        os.environ['SE_OFFLINE'] = 'true'
        self.driver = webdriver.Chrome(
            options, service.Service('/usr/bin/chromedriver'))

    def close(self):
        """End the browser."""
        self.driver.quit()

    def open(self, path):
        """Open a page."""
        self.driver.get(self._settings.url('horizon', path))

    def log_in(self, name):
        """Log in as a user of the lab."""
        self.open('/auth/login/')
        self.type('#id_username', name)
        self.type('#id_password', self._settings.passwords[name])
        self.click('#loginBtn')
        self.see('#sidebar')

    def see(self, selector, text=None):
        """Wait for an element that is shown, and perhaps for its text."""
        self.until(lambda: self._shown(selector), f'no {selector}')
        if text is not None:
            self.until(lambda: text in self.text(selector),
                       f'{selector} without {text!r}')

    def text(self, selector):
        """Return the text of an element; nothing if there is none."""
        return self.driver.execute_script(
            'const e = document.querySelector(arguments[0]);'
            ' return e ? e.textContent : ""', selector)

    def click(self, selector):
        """Click an element as soon as it can be clicked."""
        self._act(lambda: self._shown(selector), _click, selector)

    def unfold(self, selector, menu):
        """Open the menu around an element, if it is not shown."""
        self.until(lambda: self.text(selector), f'no {selector}')
        if not self._is_shown(selector):
            self.click(menu)
        self.until(lambda: self._is_shown(selector),
                   f'{menu} does not show {selector}')

    def press_on(self, selector, most=60):
        """Walk with the tab key to an element, and press Enter."""
        self.see(selector)
        for _ in range(most):
            if self.driver.execute_script(_FOCUSED, selector):
                self._press(keys.Keys.ENTER)
                return
            self._press(keys.Keys.TAB)
        raise AssertionError(f'{most} tabs do not lead to {selector}')

    def link(self, text):
        """Follow a link by its text."""
        self._act(lambda: self._shown(text, by.By.LINK_TEXT), _click,
                  f'link {text}')

    def type(self, selector, text):
        """Type into a field in place of what it holds."""
        def fill(field):
            field.clear()
            field.send_keys(text)
        self._act(lambda: self._shown(selector), fill, selector)

    def attach(self, selector, path):
        """Choose a file."""
        self._act(lambda: self._first(selector),
                  lambda field: field.send_keys(str(path)), selector)

    def choose(self, selector, text):
        """Choose an entry of a list by its text, or by what begins it."""
        def chosen(field):
            found = select.Select(field)
            texts = [each.text for each in found.options]
            # A network stands there with its subnets.
            found.select_by_visible_text(next(
                (each for each in texts if each.startswith(f'{text} (')),
                text))
        self._act(lambda: self._shown(selector), chosen, selector)

    def submit(self):
        """Send the form in the modal window."""
        self.click(f'{_MODAL} [type=submit]')

    def choose_action(self, row, name):
        """Choose an action of a row's menu, and confirm."""
        place = f'{row} .actions_column [id$=action_{name}]'
        self.unfold(place, f'{row} .dropdown-toggle')
        self.click(place)
        self.click(f'{_MODAL} .modal-footer .btn:not(.cancel)')
        self.gone()

    def gone(self, selector=_MODAL):
        """Wait until an element is gone."""
        self.until(lambda: not self._shown(selector), f'{selector} stays')

    def until(self, condition, what):
        """Wait for a condition about the page, and return its value."""
        return waits.until(self.driver, condition, what, _PATIENCE_S)

    def picture(self, name):
        """Save a picture of the window."""
        if self._pictures:
            self._pictures.mkdir(parents=True, exist_ok=True)
            path = self._pictures / f'{name}.png'
            self.driver.save_screenshot(str(path))
            pictures.shrink(path)

    def judge(self):
        """Note what axe-core finds on the page at each width."""
        for width in self._widths:
            self.driver.set_window_size(width, _HEIGHT)
            self.faults += [(self.driver.current_url, width, *fault)
                            for fault in axe.audit(self.driver)]

    def errors(self):
        """Return the errors that scripts of the pages have logged."""
        return [entry['message'] for entry in self.driver.get_log('browser')
                if entry['level'] == 'SEVERE']

    def _first(self, selector, how=by.By.CSS_SELECTOR):
        return next(iter(self.driver.find_elements(how, selector)), None)

    def _shown(self, selector, how=by.By.CSS_SELECTOR):
        """Return the first such element, if it is shown; else None."""
        found = self._first(selector, how)
        return found if found and found.is_displayed() else None

    def _is_shown(self, selector):
        """Return whether an element is shown, once the page can say so."""
        return self.until(lambda: [bool(self._shown(selector))],
                          f'{selector} cannot be looked for')[0]

    def _act(self, find, act, what):
        """Do something to an element; again if it was replaced before that.

        :param find: returns the element, or None
        :param act: a function of the element
        """
        def acted():
            element = find()
            if element is None or not element.is_enabled():
                return False
            act(element)
            return True
        self.until(acted, f'no {what}')

    def _press(self, key):
        action_chains.ActionChains(self.driver).send_keys(key).perform()


def _click(element):
    element.click()
