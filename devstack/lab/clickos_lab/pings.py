# SPDX-License-Identifier: Apache-2.0
"""A ping that runs beside other work; clickos_client.pings judges it."""

import subprocess
import time

from clickos_client import pings

from clickos_lab import errors

_LOOK_S = 0.02


class Ping:
    """A ping that runs until :meth:`result` or :meth:`kill`.

    :param command: ping without ``-c`` and ``-q``
    """

    def __init__(self, command):
        self._process = subprocess.Popen(
            [str(word) for word in command], stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            start_new_session=True)
        self._ping = pings.Running(self._process)

    def wait(self, count):
        """Wait until a request with this number was answered.

        :raises LabError: if none is for a while
        """
        deadline_s = time.monotonic() + pings.PATIENCE_S
        while max(pings.answered(self._ping.text()), default=0) < count:
            if time.monotonic() > deadline_s or \
                    self._process.poll() is not None:
                raise errors.LabError(
                    f'ping: {count} answers expected, got '
                    f'{self._ping.text()[-300:]!r}')
            time.sleep(_LOOK_S)

    def result(self):
        """Stop it; return (sent, received, average round trip in ms).

        Answers that are late count.
        """
        return judged(self._ping.result)

    def kill(self):
        """End it without a result; may be called after :meth:`result`."""
        self._process.kill()
        self._process.wait()


def judged(judge, *arguments):
    """Return (sent, received, average round trip in ms) of a judge.

    :param judge: returns the Result of a ping
    :raises LabError: if ping printed something else
    """
    try:
        found = judge(*arguments)
    except ValueError as e:
        raise errors.LabError(str(e))
    return found.sent, found.received, found.rtt_ms
