# SPDX-License-Identifier: Apache-2.0
"""Tests of unittest in this process, whose failed ones run again alone."""

import re
import sys
import unittest

from clickos_lab.suites import again

_SET_UP = re.compile(r'setUpClass \((.*)\)$')


def run(tests, result_class=None):
    """Run tests; return (0 when all passed, if need be alone, else 1, result).

    :param result_class: of the result, by default unittest's
    """
    result = _run(tests, result_class)
    if result.wasSuccessful():
        return 0, result
    failed = {test.id(): test for test, _ in
              (*result.failures, *result.errors)}
    is_judged = not result.unexpectedSuccesses and again.judge(
        list(failed), lambda name: _passes(failed[name]))
    return (0 if is_judged else 1), result


def _run(tests, result_class):
    runner = unittest.TextTestRunner(stream=sys.stdout, verbosity=2,
                                     resultclass=result_class)
    return runner.run(tests)


def _passes(test):
    """Run one test alone, or all of the class whose set-up failed."""
    if found := _SET_UP.match(test.id()):
        alone = unittest.defaultTestLoader.loadTestsFromName(found[1])
    elif isinstance(test, unittest.TestCase):
        alone = unittest.TestSuite([test])
    else:       # of a module that cannot be imported, or torn down
        return False
    result = _run(alone, None)
    return result.wasSuccessful() and result.testsRun > 0
