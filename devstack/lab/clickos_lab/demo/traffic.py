# SPDX-License-Identifier: Apache-2.0
"""Sending real packets and understanding what the tools say."""

import math
import re
import signal
import subprocess

from clickos_lab.demo import machines as _machines
from clickos_lab import errors

_SUMMARY = re.compile(r'(\d+) packets transmitted, (\d+) received')
_ANSWER = re.compile(r' icmp_seq=(\d+) ttl=')
_RTT = re.compile(r'rtt min/avg/max/mdev = [\d.]+/([\d.]+)/')


class Ping:
    """A ping that runs until a test takes its result."""

    def __init__(self, machines, client, address, interval_s):
        self._process = machines.start(client.command(
            'ping', '-n', '-q', '-i', interval_s, address))

    def result(self):
        """Stop it; return (sent, received, average round trip in ms).

        The last request may be under way, so it does not count as sent.
        """
        sent, received, rtt_ms = parse_ping(_stop(self._process))
        return received if sent == received + 1 else sent, received, rtt_ms


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
    """Send echo requests; return (count, answered of these, average ms).

    Without a deadline ping takes a last answer for lost that is late by
    two round trips.
    """
    text = client.run('ping', '-n', '-c', count, '-i', '0.02', '-w',
                      math.ceil(count * 0.02) + 2, address).stdout
    answered = {int(n) for n in _ANSWER.findall(text)}
    return (count, len(answered & set(range(1, count + 1))),
            parse_ping(text)[2])


def parse_ping(text):
    """Return (sent, received, average ms or None) of ping's summary.

    :raises LabError: if there is none
    """
    counts, rtt = _SUMMARY.search(text), _RTT.search(text)
    if not counts:
        raise errors.LabError(f'ping without a summary: {text[-300:]!r}')
    return int(counts[1]), int(counts[2]), float(rtt[1]) if rtt else None


def download(client, address, connect_timeout_s=3):
    """Fetch the server's file; return (curl's status, bytes, MB/s)."""
    done = client.run(
        'curl', '-s', '-o', '/dev/null', '--max-time', 60,
        '--connect-timeout', connect_timeout_s,
        '-w', '%{size_download} %{speed_download}',
        f'http://{address}:{_machines.HTTP_PORT}/random', timeout_s=90)
    size, speed = done.stdout.split()
    return done.returncode, int(size), float(speed) / 1e6
