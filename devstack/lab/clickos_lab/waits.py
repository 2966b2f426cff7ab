# SPDX-License-Identifier: Apache-2.0
"""Waits of browser tests, on pages that may be replaced while they wait."""

from selenium.common import exceptions
from selenium.webdriver.support import wait

#: The driver's words for an element or a page that was replaced while it
#: answered. Only the plain WebDriverException carries them.
_REPLACED = ('does not belong to the document', 'node with given id',
             'could not find node', 'no such execution context',
             'cannot find context', 'aborted by navigation')


def until(driver, condition, what, patience_s, pause_s=0.1):
    """Wait until a condition about the page is true; return its value.

    A page that was replaced under the condition makes it false. So the
    condition looks its elements up itself, and an action in it comes last.

    :param condition: a function without parameters
    :param what: what the error says if the condition stays false
    :raises TimeoutException: after ``patience_s``
    """
    def asked(_driver):
        try:
            return condition()
        except exceptions.WebDriverException as exc:
            if not is_replaced(exc):
                raise
            return None

    return wait.WebDriverWait(driver, patience_s, pause_s).until(asked, what)


def is_replaced(exc):
    """Return whether an error says that an element or a page was replaced."""
    if isinstance(exc, (exceptions.NoSuchElementException,
                        exceptions.StaleElementReferenceException)):
        return True
    text = (exc.msg or '').lower()
    return any(each in text for each in _REPLACED)
