# SPDX-License-Identifier: Apache-2.0
"""Runs the suite ``cloud`` on the services of OpenStack 2026.1.

They have a state folder of their own. cargo begins there with a copy of the
programs.
"""

import os
import shutil
import subprocess

from clickos_lab import paths
from clickos_lab import prepare
from clickos_lab import shell

RELEASE = '2026.1'


def main():
    """Return the exit status of the tests; a failure leaves the logs."""
    state = paths.State()
    prepare.everything(state)
    inner = state.root / RELEASE
    shutil.rmtree(inner, ignore_errors=True)
    (inner / 'target').mkdir(parents=True)
    (inner / paths.MARK).touch()
    shell.output(['cp', '-a', state.target / 'release', inner / 'target'],
                 timeout_s=600)
    status = subprocess.run(
        ['make', 'test', 'SUITES=cloud', f'OPENSTACK={RELEASE}'],
        cwd=paths.REPO,
        env={**os.environ, 'CLICKOS_STATE': str(inner)}).returncode
    if status == 0:
        shutil.rmtree(inner)
    return status
