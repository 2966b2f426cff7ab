# SPDX-License-Identifier: Apache-2.0
"""The ``openstack`` command, as the tenant types it."""

import json
import shlex
import time

from clickos_lab.config import site
from clickos_lab import log
from clickos_lab import shell


class Openstack:
    """Runs ``openstack`` with the tenant's credentials."""

    def __init__(self, state, settings):
        self._program = state.tool('openstack')
        self._env = shell.environment(
            state, OS_AUTH_URL=settings.url('keystone', '/v3'),
            OS_IDENTITY_API_VERSION='3', OS_REGION_NAME=site.REGION,
            OS_USERNAME='demo', OS_PROJECT_NAME='demo',
            OS_USER_DOMAIN_ID='default', OS_PROJECT_DOMAIN_ID='default',
            OS_PASSWORD=settings.passwords['demo'])

    def __call__(self, *arguments):
        """Run a command, show it, and return what it printed.

        :raises LabError: if it fails, with what it said
        """
        began_s = time.monotonic()
        text = shell.output([self._program, *arguments], env=self._env,
                            timeout_s=120)
        log.info(f'  $ openstack {shlex.join(map(str, arguments))}   '
                 f'({time.monotonic() - began_s:.1f} s)')
        return text.strip()

    def json(self, *arguments):
        """Run a command and return its result decoded."""
        return json.loads(self(*arguments, '-f', 'json'))
