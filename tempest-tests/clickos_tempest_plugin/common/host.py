# SPDX-License-Identifier: Apache-2.0
"""The compute host, through the command the operator configured."""

import json
import shlex
import subprocess

from tempest import config
from tempest.lib import exceptions

CONF = config.CONF


def command(*arguments):
    """Return the command line of one of the host's verbs."""
    return [*shlex.split(CONF.clickos.host_command), *arguments]


def run(*arguments, check=True, timeout_s=60):
    """Run a verb and return its result.

    :param check: raise if it fails
    """
    done = subprocess.run(command(*arguments), stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          text=True, timeout=timeout_s)
    if check and done.returncode:
        raise exceptions.TempestException(
            f'host: {shlex.join(arguments)}: exit status {done.returncode}:'
            f' {done.stderr or done.stdout}')
    return done


def kill_guest(server_id):
    """Kill a guest's process, as a crash would."""
    run('kill-guest', server_id)


def restart(service):
    """Kill a service of the host and start it again."""
    run('restart', service)


def leftovers(server_id):
    """List what of a server is on the host: process, store keys, ports."""
    return json.loads(run('leftovers', server_id).stdout)
