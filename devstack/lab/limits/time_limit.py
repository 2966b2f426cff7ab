# SPDX-License-Identifier: Apache-2.0
"""A time limit for each test, whatever runs it and whatever its base is.

A test that exceeds its limit fails with :class:`TestTimeout`, which names it,
and the next one runs. Its clean-ups get as much time again. A test may swallow
the exception, or hang where Python runs no signal handlers. The third limit
ends the process, which prints the stacks of all threads.

The environment variable ``TEST_LIMIT_S`` arms it in each Python program that
finds this folder on its path (sitecustomize.py). A test or a class with an
attribute ``limit_s`` has that limit instead. The set-up and the end of a class
have three times the variable, or ``set_up_limit_s`` of the class: a set-up
may wait for another class.
"""

import contextlib
import faulthandler
import functools
import os
import signal
import sys
import threading
import time
import unittest

#: With the default limit, in seconds.
VARIABLE = 'TEST_LIMIT_S'
#: Limits of the set-up of a class, and until the whole process ends.
_SET_UP = _LIMITS = 3
_ARMED = '_clickos_time_limit'
#: The messages of tests that run now, one within another, beyond their limits.
_EXPIRED = []


class TestTimeout(Exception):
    """A test took longer than its limit."""


def arm_from_environment():
    """Arm the limit if the variable is set."""
    text = os.environ.get(VARIABLE)
    if text:
        arm(float(text))


def arm(default_s):
    """Limit each test that this process runs; may be called twice.

    :param default_s: limit of a test without ``limit_s``
    """
    setattr(unittest.TestCase, _ARMED, default_s)
    if getattr(unittest.TestCase.__call__, _ARMED, False):
        return
    suite = unittest.TestSuite
    unittest.TestCase.__call__ = _limited(
        unittest.TestCase.__call__, lambda test, *_: (test.id(), test))
    unittest.TestCase.subTest = _ended(unittest.TestCase.subTest)
    suite._handleClassSetUp = _limited(
        suite._handleClassSetUp, lambda _, test, __: _of_class(
            'setUpClass', type(test)))
    suite._tearDownPreviousClass = _limited(
        suite._tearDownPreviousClass, lambda _, __, result: _of_class(
            'tearDownClass', getattr(result, '_previousTestClass', None)))


def _limited(function, subject_of):
    """Return a function that runs under the limit of its subject.

    :param subject_of: returns a name, and the test or class
    """
    @functools.wraps(function)
    def run(*arguments, **more):
        name, subject = subject_of(*arguments)
        if threading.current_thread() is not threading.main_thread():
            return function(*arguments, **more)
        with _limit(name, limit_s(subject)):
            return function(*arguments, **more)
    setattr(run, _ARMED, True)
    return run


def _ended(sub_test):
    """Return ``subTest`` that begins no further one beyond the limit.

    It takes the exception of the one in which the limit was over.
    """
    @functools.wraps(sub_test)
    def begin(*arguments, **more):
        if _EXPIRED:
            raise TestTimeout(_EXPIRED[-1])
        return sub_test(*arguments, **more)
    return begin


def limit_s(subject):
    """Return the limit of a test, or of the set-up and end of a class."""
    default_s = getattr(unittest.TestCase, _ARMED)
    if isinstance(subject, type):
        return getattr(subject, 'set_up_limit_s', _SET_UP * default_s)
    method = getattr(subject, getattr(subject, '_testMethodName', ''), None)
    return getattr(method, 'limit_s', getattr(subject, 'limit_s', default_s))


def _of_class(step, of):
    of = of or unittest.TestCase        # before the first one
    return f'{step} ({of.__module__}.{of.__qualname__})', of


@contextlib.contextmanager
def _limit(name, seconds):
    """Raise TestTimeout in the block each time the limit is over."""
    def expired(*_):
        message = f'{name}: not done after {seconds:g} s'
        print(f'time limit: {message}', file=sys.__stderr__, flush=True)
        _EXPIRED.append(message)
        raise TestTimeout(message)

    began_s, before = time.monotonic(), len(_EXPIRED)
    handler = signal.signal(signal.SIGALRM, expired)
    rest_s, interval_s = signal.setitimer(signal.ITIMER_REAL, seconds,
                                          seconds)
    faulthandler.dump_traceback_later(_LIMITS * seconds, exit=True,
                                      file=sys.__stderr__)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        del _EXPIRED[before:]
        faulthandler.cancel_dump_traceback_later()
        signal.signal(signal.SIGALRM, handler)
        if rest_s:      # of a test that runs this one
            rest_s = max(0.001, rest_s - (time.monotonic() - began_s))
            signal.setitimer(signal.ITIMER_REAL, rest_s, interval_s)
