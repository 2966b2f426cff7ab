# SPDX-License-Identifier: Apache-2.0
"""A ping that runs during other work; clickos_client.pings judges it."""

import subprocess

from clickos_client import pings

from clickos_lab import errors


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

    def wait(self, count=1):
        """Wait until a request of this number, or a later one, has an answer.

        :raises LabError: if none has one for a while
        """
        _checked(self._ping.wait, count)

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
    found = _checked(judge, *arguments)
    return found.sent, found.received, found.rtt_ms


def _checked(call, *arguments):
    try:
        return call(*arguments)
    except ValueError as e:
        raise errors.LabError(str(e))
