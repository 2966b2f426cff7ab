# SPDX-License-Identifier: Apache-2.0
"""The main job in a browser over HTTPS; each page is judged at two widths."""

from tests.lab import browser
from tests.lab import test_browser


class WidthsTest(test_browser.MainJobTest):

    widths = browser.WIDTHS
