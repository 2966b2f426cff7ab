# SPDX-License-Identifier: Apache-2.0
"""Compute hosts, through the commands the operator configured."""

import contextlib
import json
import shlex
import subprocess

from tempest import config
from tempest.lib import exceptions

CONF = config.CONF


class Host:
    """A compute host.

    :param option: of group ``[clickos]``, with the host's command
    """

    def __init__(self, option='host_command'):
        self.option = option

    def available(self):
        """Return whether the operator has given the command."""
        return bool(CONF.clickos[self.option])

    def command(self, *arguments):
        """Return the command line of one of the host's verbs."""
        return [*shlex.split(CONF.clickos[self.option]), *arguments]

    def run(self, *arguments, check=True, timeout_s=60):
        """Run a verb and return its result.

        :param check: raise if it fails
        """
        done = subprocess.run(
            self.command(*arguments), stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            timeout=timeout_s)
        if check and done.returncode:
            raise exceptions.TempestException(
                f'host: {shlex.join(arguments)}: exit status '
                f'{done.returncode}: {done.stderr or done.stdout}')
        return done

    def kill_guest(self, server_id):
        """Kill a guest, as a crash would."""
        self.run('kill-guest', server_id)

    def hang_guest(self, server_id):
        """Let a guest answer nothing, as one that spins."""
        self.run('hang-guest', server_id)

    def restart(self, service):
        """Kill a service of the host and start it again."""
        self.run('restart', service)

    def power_cut(self):
        """Kill all that runs on the host, and boot it."""
        self.run('power-cut', timeout_s=300)

    def jump_clock(self, seconds):
        """Set the host's time of day forward, or back if negative."""
        self.run('clock-jump', '--seconds', str(seconds))

    def outage(self, service, kind, seconds):
        """Take a service away, also in the background; it comes back.

        It is away inside the context, as long as ``seconds`` last, and back
        behind it.
        """
        return self._away(seconds, 'outage', service, kind)

    def read_only(self, seconds):
        """Let cosmosd's folder of state take no write, as :meth:`outage`."""
        return self._away(seconds, 'read-only')

    @contextlib.contextmanager
    def _away(self, seconds, *arguments):
        process = subprocess.Popen(
            self.command(*arguments, '--seconds', str(seconds)),
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, text=True)
        try:
            output = process.stdout.readline()
            if output == 'away\n':
                yield
        finally:
            output += process.communicate(timeout=seconds + 120)[0]
        if process.returncode:
            raise exceptions.TempestException(
                f'host: {shlex.join(arguments)}: {output}')

    def leftovers(self, server_id):
        """List what of a server is on the host: guest, store keys, ports."""
        return json.loads(self.run('leftovers', server_id).stdout)
