# SPDX-License-Identifier: Apache-2.0
"""Sending real packets and understanding what the tools say."""

import signal
import subprocess

from clickos_client import pings

from clickos_lab.demo import machines as _machines
from clickos_lab import errors
from clickos_lab import pings as _pings


class Capture:
    """tcpdump on the outer end of a machine's veth pair.

    It ends by itself after ``count`` packets.
    """

    def __init__(self, machines, machine, expression, count):
        self._process = machines.start([
            'tcpdump', '-n', '-l', '-Z', 'root', '--immediate-mode',
            '-c', count, '-i', machine.outer, *expression.split()])
        for line in self._process.stdout:
            if 'listening on' in line:
                return
        raise errors.LabError(f'tcpdump does not listen on {machine.outer}')

    def lines(self):
        """Return a line for each packet, after two seconds at most."""
        try:
            text, _ = self._process.communicate(timeout=2)
        except subprocess.TimeoutExpired:
            text = _stop(self._process)
        return [line for line in text.splitlines() if ' IP ' in line]


def _stop(process):
    process.send_signal(signal.SIGINT)
    return process.communicate(timeout=10)[0]


def ping(client, address, count):
    """Send echo requests; return (count, answered of these, average ms)."""
    text = client.run(*pings.command(address, count, 0.02),
                      timeout_s=2 * pings.PATIENCE_S).stdout
    return _pings.judged(pings.judge, text, count)


def download(client, address, connect_timeout_s=3):
    """Fetch the server's file; return (curl's status, bytes, MB/s)."""
    done = client.run(
        'curl', '-s', '-o', '/dev/null', '--max-time', 60,
        '--connect-timeout', connect_timeout_s,
        '-w', '%{size_download} %{speed_download}',
        f'http://{address}:{_machines.HTTP_PORT}/random', timeout_s=90)
    size, speed = done.stdout.split()
    return done.returncode, int(size), float(speed) / 1e6
