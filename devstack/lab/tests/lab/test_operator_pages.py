# SPDX-License-Identifier: Apache-2.0
"""What an operator does in a browser: publish a package, look at hosts."""

import os
import unittest

from clickos_lab.cloud import sessions
from clickos_lab.demo import tacker
from clickos_lab import paths
from clickos_lab import settings
from tests.lab import browser

_PRODUCT = 'Shaper'
_OFFER = f'#catalog tr[data-display="{_PRODUCT}"]'
_PACKAGE = f'#packages tr[data-display="{_PRODUCT}"]'
_HOST = '#clickos-hosts tbody tr'
#: Cells of a host's row, after its name: state, guests, two of memory.
_RATES = ('return [...document.querySelectorAll("#clickos-hosts tbody tr")]'
          '.map(row => [row.cells[1].textContent, row.cells[5].textContent])')


class OperatorPagesTest(unittest.TestCase):

    def setUp(self):
        super().setUp()
        lab = settings.Settings.load(paths.State())
        remove = tacker.Tacker(sessions.admin(lab)).remove_packages
        remove(_PRODUCT)    # of a run that was cut short
        self.addCleanup(remove, _PRODUCT)
        self.browser = browser.Browser(lab, os.environ.get('PICTURES'))
        self.addCleanup(self.browser.close)
        self.browser.log_in('admin')

    def test_a_package_is_published_with_one_click(self):
        window = self.browser
        window.open('/clickos/packages/')
        window.click('#packages__action_catalog')
        window.see(_OFFER, 'Publish')
        window.judge()
        window.picture('catalog')
        window.click(f'{_OFFER} [id$=action_publish]')
        window.see('.alert', 'package')
        window.until(self.onboarded, 'the package is not onboarded')
        window.open('/clickos/packages/catalog')
        window.see(_OFFER, 'yes')
        self.assertNotIn('Publish', window.text(_OFFER))
        window.open('/clickos/packages/')
        window.choose_action(_PACKAGE, 'delete')
        window.gone(_PACKAGE)
        self.assertEqual([], window.errors())
        self.assertEqual([], window.faults)

    def onboarded(self):
        """Return whether Tacker has read the package, which may take long."""
        self.browser.open('/clickos/packages/')
        return 'ONBOARDED' in self.browser.text(_PACKAGE)

    def test_each_host_shows_what_its_switch_moves(self):
        window = self.browser
        window.until(self.measured, 'no host has a rate')
        window.judge()
        window.picture('overview-hosts')
        self.assertEqual([], window.errors())
        self.assertEqual([], window.faults)

    def measured(self):
        """Return whether all hosts are up and have reported twice."""
        self.browser.open('/clickos/')
        self.browser.see(_HOST)
        rows = self.browser.driver.execute_script(_RATES)
        return all(state == 'up' and rate.isdigit() for state, rate in rows)
