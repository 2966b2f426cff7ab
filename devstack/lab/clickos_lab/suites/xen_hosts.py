# SPDX-License-Identifier: Apache-2.0
"""``python -m clickos_lab.suites.xen_hosts``: a cloud with two Xen hosts.

A VLAN and a VXLAN network of one tenant span the two, and servers move from
one to the other. Arguments go to ``tempest run``.
"""

import os
import sys

from clickos_lab.config import hosts
from clickos_lab import lab as _lab
from clickos_lab import paths
from clickos_lab import prepare
from clickos_lab.suites import on_lab
from clickos_lab.suites import tempest_run

_TESTS = r'^clickos_tempest_plugin\..*\.' \
    r'(NetworksTest|LiveMigrationOnXenTest|MovesOnXenTest)\.'


def main():
    """Start the services, run the tests, stop the services."""
    tempest_run.require_known(sys.argv[1:])
    state = paths.State()
    return on_lab.run(_lab.Lab(state, hosts.XENS), lambda: _run(state),
                      lambda: prepare.xen(state))


def _run(state):
    return tempest_run.run(
        state, sys.argv[1:] or ['--regex', _TESTS],
        lambda workspace: tempest_run.configure(state, workspace, *hosts.XENS))


if __name__ == '__main__':
    os.umask(0o077)
    sys.exit(main())
