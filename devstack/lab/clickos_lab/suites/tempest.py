# SPDX-License-Identifier: Apache-2.0
"""Our Tempest plugin against services that are started for it.

Tempest's own smoke tests of Nova and Neutron follow on the same services.
"""

import os
import subprocess
import sys

from clickos_lab import apt
from clickos_lab.config import hosts
from clickos_lab import dashboard
from clickos_lab import lab as _lab
from clickos_lab import paths
from clickos_lab import prepare
from clickos_lab import shell
from clickos_lab.suites import compute
from clickos_lab.suites import on_lab
from clickos_lab.suites import tempest_run

#: Tempest's word for tests that take long; soak runs them, too.
_QUICK = r'^(?!.*\[.*\bslow\b)clickos_tempest_plugin'


def main():
    """Start the services, run the tests, stop the services.

    Arguments replace the expression that selects our tests but the slow
    ones, and go to ``tempest run``.
    """
    state = paths.State()
    lab = _lab.Lab(state, (hosts.SECOND, hosts.XEN))
    return on_lab.run(lab, lambda: _all(state, sys.argv[1:]),
                      lambda: _prepare(state))


def _prepare(state):
    prepare.xen(state)
    apt.ensure(state, apt.NETWORK_PACKAGES)
    dashboard.provide_tools(state)


def _all(state, arguments):
    """Run the tests of the lab itself, then Tempest's; without arguments."""
    if state.wants_tls:
        failed = [_lab_tests(state, 'tests/tls')]
    elif arguments:
        failed = []
    else:
        failed = [_lab_tests(state, 'tests/lab'), compute.smoke(state)]
    failed.append(tempest_run.run(state, arguments or ['--regex', _QUICK]))
    return int(any(failed))


def _lab_tests(state, tests):
    """Run a folder of tests of the running lab itself."""
    folder = paths.REPO / 'devstack/lab'
    env = {**shell.environment(state), 'PYTHONPATH': str(folder)}
    return subprocess.run(
        [sys.executable, '-m', 'unittest', 'discover', '-v', '-s',
         tests, '-t', '.'], cwd=folder, env=env,
        stdin=subprocess.DEVNULL).returncode


if __name__ == '__main__':
    os.umask(0o077)
    sys.exit(main())
