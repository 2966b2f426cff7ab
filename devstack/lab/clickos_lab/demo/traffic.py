# SPDX-License-Identifier: Apache-2.0
"""Sending real packets and understanding what the tools say."""

import signal
import subprocess

from clickos_client import pings

from clickos_lab.demo import machines as _machines
from clickos_lab import errors


class Ping:
    """A ping that runs until a test takes its result."""

    def __init__(self, machines, client, address, interval_s):
        self._ping = pings.Running(machines.start(client.command(
            'ping', '-n', '-i', interval_s, address)))
        _of_ping(self._ping.wait)

    def result(self):
        """Stop it; return (sent, received, average round trip in ms).

        Answers that are late count.
        """
        return _figures(_of_ping(self._ping.result))


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
    return _figures(_of_ping(pings.judge, text, count))


def _of_ping(call, *arguments):
    """Return what a function of pings returns.

    :raises LabError: if ping printed something else
    """
    try:
        return call(*arguments)
    except ValueError as e:
        raise errors.LabError(str(e))


def _figures(found):
    return found.sent, found.received, found.rtt_ms


def download(client, address, connect_timeout_s=3):
    """Fetch the server's file; return (curl's status, bytes, MB/s)."""
    done = client.run(
        'curl', '-s', '-o', '/dev/null', '--max-time', 60,
        '--connect-timeout', connect_timeout_s,
        '-w', '%{size_download} %{speed_download}',
        f'http://{address}:{_machines.HTTP_PORT}/random', timeout_s=90)
    size, speed = done.stdout.split()
    return done.returncode, int(size), float(speed) / 1e6
