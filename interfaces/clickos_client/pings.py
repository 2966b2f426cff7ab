# SPDX-License-Identifier: Apache-2.0
"""The requests of ping(8) of iputils that have an answer.

ping counts a request as lost if its answer is under way when ping stops. With
a fixed number it waits two round trips for the last answer. On a machine with
load that says nothing of the network. Here a request is lost if it has no
answer after a generous wait.
"""

import collections
import dataclasses
import math
import re
import signal
import threading
import time

#: for an answer, in seconds
PATIENCE_S = 60
_LOOK_S = 0.05
#: one that came twice counts once
_ANSWER = re.compile(r'icmp_seq=(\d+) ttl=(?!.*DUP)')
#: of ping -D: seconds of the wall clock
_ANSWERED_AT = re.compile(r'^\[(\d+\.\d+)\] .*icmp_seq=\d+ ttl=', re.MULTILINE)
_NUMBERS = 1 << 16
#: printed at SIGQUIT
_STATUS = re.compile(r'\d+/(\d+) packets')
_SUMMARY = re.compile(r'\d+ packets transmitted, \d+ received')
_RTT = re.compile(r'rtt min/avg/max/mdev = [\d.]+/([\d.]+)/')


@dataclasses.dataclass(frozen=True)
class Result:
    """The outcome of the requests 1 to ``sent``.

    ``rtt_ms`` is the average round trip, None without an answer.
    """

    sent: int
    lost: tuple
    rtt_ms: float | None = None

    @property
    def received(self):
        """How many requests have an answer."""
        return self.sent - len(self.lost)


def command(address, count, interval_s=0.2, *options):
    """Return the words of a ping that sends until ``count`` are answered.

    It sends further requests while answers are missing, and gives up after
    :data:`PATIENCE_S`.
    """
    deadline_s = math.ceil(count * interval_s) + PATIENCE_S
    return ['ping', '-n', '-c', str(count), '-i', str(interval_s),
            '-w', str(deadline_s), *map(str, options), str(address)]


def judge(text, count):
    """Return the Result of the first requests of a ping that has ended.

    :param text: output of :func:`command`
    :param count: how many requests count
    :raises ValueError: if ping printed no summary
    """
    if not _SUMMARY.search(text):
        raise ValueError(f'ping: expected a summary, got {text[-300:]!r}')
    rtt = _RTT.search(text)
    return Result(count, _missing(text, count),
                  float(rtt[1]) if rtt else None)


def _missing(text, count):
    """Return the requests without an answer; numbers have 16 bits."""
    wanted = collections.Counter(
        number % _NUMBERS for number in range(1, count + 1))
    wanted.subtract(int(number) for number in _ANSWER.findall(text))
    return tuple(sorted(number for number, n in wanted.items() if n > 0))


def answered(text):
    """Return the numbers of the requests that were answered."""
    return {int(number) for number in _ANSWER.findall(text)}


def times_s(text):
    """Return when each answer came, in seconds of the wall clock.

    :param text: output of ``ping -D``
    """
    return [float(at) for at in _ANSWERED_AT.findall(text)]


def silence_s(text):
    """Return the longest time between two answers, in seconds.

    :param text: output of ``ping -D``
    :raises ValueError: if it has no two answers
    """
    found = times_s(text)
    if len(found) < 2:
        raise ValueError(f'ping: expected 2 answers, got {text[-300:]!r}')
    return max(after - before for before, after in zip(found, found[1:]))


class Running:
    """A ping that runs until :meth:`result`.

    :param process: subprocess.Popen of ``ping -n`` without ``-c`` and
        ``-q``, with one pipe for its output and its errors
    """

    def __init__(self, process):
        self._process = process
        self._parts = []
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self):
        """Read at once: ping stops while a pipe is full."""
        for line in self._process.stdout:
            self._parts.append(line if isinstance(line, str)
                               else line.decode(errors='replace'))

    def text(self):
        """Return what ping has printed until now."""
        return ''.join(self._parts)

    def wait(self, count=1, patience_s=PATIENCE_S):
        """Wait until a request of this number, or a later one, has an answer.

        :raises ValueError: if none has one, or ping ended
        """
        deadline_s = time.monotonic() + patience_s
        while max(answered(self.text()), default=0) < count:
            if time.monotonic() > deadline_s or \
                    self._process.poll() is not None:
                raise ValueError(f'ping: expected {count} answered within '
                                 f'{patience_s} s, got {self.text()!r}')
            time.sleep(_LOOK_S)

    def result(self, patience_s=PATIENCE_S):
        """End the ping; return the Result of what it had sent by now.

        It continues until all of these have an answer.

        :raises ValueError: if ping does not tell how many it sent
        """
        deadline_s = time.monotonic() + patience_s
        self._process.send_signal(signal.SIGQUIT)
        while time.monotonic() < deadline_s and not self._is_settled():
            time.sleep(_LOOK_S)
        self._process.send_signal(signal.SIGINT)
        self._process.wait(PATIENCE_S)
        self._reader.join(PATIENCE_S)
        text = self.text()
        status = _STATUS.search(text)
        if not status:
            raise ValueError(f'ping: expected its status, got {text[-300:]!r}')
        return judge(text, int(status[1]))

    def _is_settled(self):
        text = self.text()
        status = _STATUS.search(text)
        if not status:
            return self._process.poll() is not None
        return not _missing(text, int(status[1]))
