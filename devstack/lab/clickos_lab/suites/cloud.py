# SPDX-License-Identifier: Apache-2.0
"""The suite ``cloud``: one lab for the demonstration, documents and Tempest.

``python -m clickos_lab.suites.cloud`` starts the demonstration as a person
does. It runs the commands that the demonstration prints and those of the
README, and then Tempest tests that touch each API once. With ``--everything``
the lab has a second host and one on Xen. The blocks of all pages and all
quick tests run there, and each VNF of the catalog is deployed. A
demonstration on Xen ends the suite.
"""

import os
import sys

from clickos_lab.config import hosts
from clickos_lab import lab as _lab
from clickos_lab import paths
from clickos_lab import rust
from clickos_lab.suites import deployed
from clickos_lab.suites import documents
from clickos_lab.suites import on_lab
from clickos_lab.suites import tempest


def main(arguments):
    """Return the exit status."""
    state = paths.State()
    if arguments == ['--everything']:
        lab = _lab.Lab(state, (hosts.SECOND, hosts.XEN))
        return on_lab.run(lab, lambda: _everything(state),
                          lambda: _prepare(state))
    return on_lab.then_stop(_lab.Lab(state), lambda: _gate(state))


def _gate(state):
    documents.start(state)
    failed = [documents.run(state, documents.SHORT, short=True),
              tempest.quick(state)]
    return int(any(failed))


def _prepare(state):
    # A page has this build, which can take longer than its blocks may.
    rust.build_click(state)
    tempest.prepare_everything(state)
    deployed.prepare_scenarios(state)


def _everything(state):
    documents.start(state)
    failed = [documents.run(state, documents.pages()),
              tempest.everything(state), deployed.run(state),
              documents.on_xen(state)]
    return int(any(failed))


if __name__ == '__main__':
    os.umask(0o077)
    sys.exit(main(sys.argv[1:]))
