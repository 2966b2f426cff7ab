# SPDX-License-Identifier: Apache-2.0
"""``python -m clickos_lab.suites.stock``: VNFs of Heat next to ours.

Tacker has its stock driver there, and the lab has Heat with a second compute
host, of Nova's fake driver. Arguments go to ``tempest run``.
"""

import os
import sys

from clickos_lab import heat
from clickos_lab import lab as _lab
from clickos_lab import paths
from clickos_lab import settings as _settings
from clickos_lab.suites import on_lab
from clickos_lab.suites import tempest_run

_TESTS = r'^clickos_tempest_plugin\..*\.BesideHeatTest\.'


def main():
    """Start the services, run the tests, stop the services."""
    tempest_run.require_known(sys.argv[1:])
    state = paths.State()
    return on_lab.run(_lab.Lab(state, has_heat=True), lambda: _run(state),
                      lambda: heat.install(state))


def _run(state):
    try:
        return tempest_run.run(state,
                               sys.argv[1:] or ['--regex', _TESTS])
    finally:
        heat.forget(state, _settings.Settings.load(state))


if __name__ == '__main__':
    os.umask(0o077)
    sys.exit(main())
