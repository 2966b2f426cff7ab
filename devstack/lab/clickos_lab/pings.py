# SPDX-License-Identifier: Apache-2.0
"""What the program ping reports, and a ping that runs beside other work."""

import os
import re
import signal
import subprocess
import tempfile
import time

from clickos_lab import errors

_SUMMARY = re.compile(r'(\d+) packets transmitted, (\d+) received')
_ANSWER = re.compile(r' icmp_seq=(\d+) ttl=')
_RTT = re.compile(r'rtt min/avg/max/mdev = [\d.]+/([\d.]+)/')
#: Seconds that ping may take for an answer, or to end.
_PATIENCE_S = 20
_MOST_BYTES = 1 << 26


class Ping:
    """A ping that runs until :meth:`result` or :meth:`kill`.

    :param command: ping without ``-q``: a lost answer is known by its number
    """

    def __init__(self, command):
        # A pipe that nothing reads would fill and stop a long ping.
        self._output = tempfile.TemporaryFile()
        self._process = subprocess.Popen(
            [str(word) for word in command], stdin=subprocess.DEVNULL,
            stdout=self._output, stderr=subprocess.STDOUT,
            start_new_session=True)

    def wait(self, count):
        """Wait until a request with this number was answered.

        :raises LabError: if none is for a while
        """
        end_s = time.monotonic() + _PATIENCE_S
        while max(answered(self._printed()), default=0) < count:
            if time.monotonic() > end_s or self._process.poll() is not None:
                raise errors.LabError(
                    f'ping: {count} answers expected, got '
                    f'{self._printed()[-300:]!r}')
            time.sleep(0.02)

    def _printed(self):
        # The child writes at the same offset, so reading must not move it.
        return os.pread(self._output.fileno(), _MOST_BYTES, 0).decode()

    def result(self):
        """Stop it; return (sent, received, average round trip in ms)."""
        self._process.send_signal(signal.SIGINT)
        self._process.wait(timeout=_PATIENCE_S)
        return parse_stopped(self._printed())

    def kill(self):
        """End it without a result; may be called after :meth:`result`."""
        self._process.kill()
        self._process.wait()
        self._output.close()


def parse(text):
    """Return (sent, received, average round trip in ms or None).

    :raises LabError: if the text has no summary
    """
    counts, rtt = _SUMMARY.search(text), _RTT.search(text)
    if not counts:
        raise errors.LabError(f'ping without a summary: {text[-300:]!r}')
    return int(counts[1]), int(counts[2]), float(rtt[1]) if rtt else None


def answered(text):
    """Return the numbers of the requests that were answered."""
    return {int(number) for number in _ANSWER.findall(text)}


def parse_stopped(text):
    """Return the same of a ping that was interrupted.

    The last request may be under way, so it does not count as sent.
    """
    sent, _, rtt_ms = parse(text)
    missing = set(range(1, sent + 1)) - answered(text)
    if missing == {sent}:
        sent, missing = sent - 1, set()
    return sent, sent - len(missing), rtt_ms
