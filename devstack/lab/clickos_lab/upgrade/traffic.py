# SPDX-License-Identifier: Apache-2.0
"""A ping that runs all the time, judged step by step."""

import subprocess
import time

from clickos_client import pings

from clickos_lab import errors

INTERVAL_S = 0.1


class Stream:
    """Echo requests from a machine through the guest.

    :param log: file for what ping prints
    """

    def __init__(self, machine, address, log):
        self._log, self._since = log, 0
        with open(log, 'wb') as output:
            self._process = subprocess.Popen(
                machine.command('ping', '-n', '-i', INTERVAL_S, address),
                stdin=subprocess.DEVNULL, stdout=output,
                stderr=subprocess.STDOUT)

    def _answered(self):
        return pings.answered(self._log.read_text())

    def settle(self):
        """Wait for a further answer, and count from there."""
        self._since = self._next()

    def _next(self, timeout_s=120):
        """Wait for a further answer; return its number.

        :raises LabError: if none arrives
        """
        before = max(self._answered(), default=0)
        end_s = time.monotonic() + timeout_s
        while (now := max(self._answered(), default=0)) <= before:
            if time.monotonic() > end_s:
                raise errors.LabError(
                    f'{self._log.name}: no answer for {timeout_s} s')
            time.sleep(INTERVAL_S)
        return now

    def lost(self):
        """Return how many requests were lost since the last call.

        :returns: number, and the longest time without an answer in seconds
        """
        last = self._next()
        found = judge(self._answered(), self._since)
        self._since = last
        return found

    def stop(self):
        """End it; may be called twice."""
        self._process.terminate()
        self._process.wait()


def judge(answered, since):
    """Count requests without an answer between the answered ones.

    :param answered: their numbers
    :returns: number, and the longest time without an answer in seconds
    """
    numbers = sorted({since, *(n for n in answered if n > since)})
    gaps = [after - before - 1
            for before, after in zip(numbers, numbers[1:])]
    return sum(gaps), max(gaps, default=0) * INTERVAL_S
