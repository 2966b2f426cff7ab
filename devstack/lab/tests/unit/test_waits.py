# SPDX-License-Identifier: Apache-2.0
"""A browser test's wait outlives a page that is replaced, and no more."""

import unittest

from clickos_lab import waits
from selenium.common import exceptions

#: As chromedriver words it while a page is loaded again.
_GONE = ('unknown error: unhandled inspector error: {"code":-32000,"message":'
         '"Node with given id does not belong to the document"}')
_REPLACED = (
    exceptions.WebDriverException(_GONE),
    exceptions.StaleElementReferenceException('stale'),
    exceptions.NoSuchElementException('none'),
    exceptions.WebDriverException('Cannot find context with specified id'),
    exceptions.WebDriverException('aborted by navigation: loader changed'))


def _script(*answers):
    """Return a condition that gives or raises one answer after another."""
    rest = iter(answers)

    def condition():
        answer = next(rest)
        if isinstance(answer, Exception):
            raise answer
        return answer
    return condition


class WaitsTest(unittest.TestCase):

    def until(self, *answers, patience_s=60):
        return waits.until(None, _script(*answers), 'what is awaited',
                           patience_s, pause_s=0.001)

    def test_a_replaced_page_is_asked_again(self):
        for error in _REPLACED:
            with self.subTest(error.msg):
                self.assertEqual('shown', self.until(error, '', 'shown'))

    def test_any_other_error_is_raised(self):
        for error in (exceptions.WebDriverException('chrome not reachable'),
                      exceptions.WebDriverException(),
                      exceptions.ElementClickInterceptedException('window'),
                      exceptions.JavascriptException('a is not a function'),
                      ValueError('of the test')):
            with self.subTest(error), self.assertRaises(type(error)):
                self.until(error, 'shown')

    def test_a_false_condition_ends_with_its_name(self):
        with self.assertRaisesRegex(exceptions.TimeoutException,
                                    'what is awaited'):
            self.until(_REPLACED[0], patience_s=-1)
