# SPDX-License-Identifier: Apache-2.0
"""The tests on a real Xen host; a program, so that others can be named.

``python -m clickos_lab.suites.xen [TEST ...]``, a test as
``tests.xen.test_host`` or ``tests.xen.test_host.BootTest``. With ``--gate``
it runs :data:`GATE`, which needs no toolstack.
"""

import concurrent.futures
import contextlib
import os
import signal
import sys
import time
import unittest

from clickos_lab import errors
from clickos_lab import paths
from clickos_lab.suites import prebuild
from clickos_lab.suites import unittests
from clickos_lab.xen import command
from clickos_lab.xen import host
from clickos_lab.xen import image
from clickos_lab.xen import xen_paths

_TOP = paths.REPO / 'devstack/lab'
#: What the tests import besides the lab.
_PACKAGES = ('tacker-plugin', 'interfaces', 'cosmos/python',
             'devstack/lab/limits')
#: One boot of stock Xen, the control protocol, and a guest on a bridge that is
#: saved and restored while it answers.
GATE = (*(f'tests.xen.test_control.PvhTest.test_{name}' for name in (
    'a_batch_is_all_or_nothing', 'a_configuration_in_pieces',
    'a_person_needs_two_keys', 'a_person_writes_a_handler',
    'a_persons_error_is_told', 'a_wrong_argument_is_told',
    'an_empty_configuration_removes_the_router', 'console_and_version',
    'errors_have_line_and_column', 'handlers_are_listed',
    'hot_swap_keeps_counters')),
    'tests.xen.test_guest.GuestTest.test_saved_and_restored_in_mid_traffic')
#: for each test; a slow one has a limit of its own, and soak has hours
_LIMIT_S, _SOAK_LIMIT_S = 600, 6 * 3600


def main(names, slow=False):
    """Build what is missing and run the tests; 0 when all passed.

    :param names: of the tests; if there are none, those in ``tests/xen``
    :param slow: whether those that ``tests.xen.base.slow`` marks are among
        them
    """
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        state = paths.State()
        command.install(state)
        with contextlib.nullcontext() if names else prebuild.started(state):
            command.prepare(state)
            with _profiles(state, in_parallel=names == list(GATE)):
                return _run_on_hosts(state, names, slow)
    except errors.LabError as e:
        print(f'error: {e}')
        return 1


@contextlib.contextmanager
def _profiles(state, in_parallel):
    """Build the image of each profile, which checks the bound on its size.

    :param in_parallel: whether the tests need none of them but the first,
        and may run meanwhile
    """
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        built = pool.submit(image.build_profiles, state)
        if not in_parallel:
            built.result()
        yield
        built.result()


def _run_on_hosts(state, names, slow):
    try:
        return run(names, slow)
    finally:
        _remove_hosts(xen_paths.XenPaths(state))


def run(names, slow=False):
    """Run tests that find all that they need; 0 when all passed."""
    tests = _tests(names, slow)
    import time_limit       # the path leads there by now
    is_soak = any(name.startswith('tests.soak') for name in names)
    time_limit.arm(_SOAK_LIMIT_S if is_soak else _LIMIT_S)
    status, result = unittests.run(tests, TimedResult)
    print(result.table(), flush=True)
    return status


class TimedResult(unittest.TextTestResult):
    """A result that knows how long each test took.

    The host of a class, and what is built for it, counts for its first test.
    """

    def __init__(self, *arguments, **more):
        super().__init__(*arguments, **more)
        self._seconds = {}
        self._since_s = time.monotonic()

    def stopTest(self, test):
        """Keep the time since the last test ended."""
        super().stopTest(test)
        now_s = time.monotonic()
        name = test.id().removeprefix('tests.xen.')
        self._seconds[name] = now_s - self._since_s
        self._since_s = now_s

    def table(self):
        """Return a line for each test, in the order of their time."""
        longest = sorted(self._seconds.items(), key=lambda item: -item[1])
        total_s = sum(self._seconds.values())
        lines = [f'{s:8.1f} s  {name}' for name, s in longest]
        return '\n'.join([*lines, f'{total_s:8.1f} s  all'])


def _remove_hosts(of):
    """End the hosts of this run: a test that is interrupted leaves them."""
    for name in of.names():
        if name.rstrip('b') == f't{os.getpid()}':
            host.Host(of, name).remove()


def _tests(names, slow):
    sys.path[:0] = [str(_TOP), *(str(paths.REPO / p) for p in _PACKAGES)]
    loader = unittest.TestLoader()
    if names:
        return loader.loadTestsFromNames(names)
    found = _each(loader.discover(_TOP / 'tests/xen', top_level_dir=_TOP))
    return unittest.TestSuite(sorted(
        (test for test in found if slow or not _is_slow(test)),
        key=_needs_toolstack))


def _each(test):
    """Yield the tests of a suite, class by class."""
    if isinstance(test, unittest.TestSuite):
        for each in test:
            yield from _each(each)
    else:
        yield test


def _is_slow(test):
    return hasattr(test, 'slow') or hasattr(
        getattr(test, test.id().rpartition('.')[2], None), 'slow')


def _needs_toolstack(test):
    """Tell which tests come last: the toolstack is built meanwhile."""
    from tests.xen import base      # the path leads there by now
    return isinstance(test, base.CosmosTest)


if __name__ == '__main__':
    os.umask(0o077)
    sys.exit(main(list(GATE) if sys.argv[1:] == ['--gate'] else sys.argv[1:]))
