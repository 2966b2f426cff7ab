# SPDX-License-Identifier: Apache-2.0
"""``make cast``: a live rule change, recorded as a picture that moves.

The commands run on the host of ``make try``, with pauses for the reader. The
picture has what they print, at the times at which they print it.
"""

import queue
import shlex
import signal
import sys
import threading
import time

from clickos_client import pings

from clickos_lab import errors
from clickos_lab import log
from clickos_lab import paths
from clickos_lab import prepare
from clickos_lab.trial import drawing
from clickos_lab.trial import place as _place
from clickos_lab.trial import trial_run

PICTURE = paths.REPO / 'docs/images/live-rule-change.svg'
_URL = f'http://{_place.SERVER_IP}/'
_CURL = ('curl', '-sS', '--connect-timeout', '1', _URL)
_RULE = ('cosmos', 'write', _place.GUEST, 'fw.config')
#: Where each command runs, and its words.
_SCRIPT = (('client', _CURL),
           ('host', (*_RULE, trial_run.NO_HTTP)),
           ('client', _CURL),
           ('host', ('cosmos', 'read', _place.GUEST, 'fw.hits')),
           ('host', (*_RULE, _place.OPEN)),
           ('client', _CURL))
_PING = ('ping', '-n', '-i', '0.2', _place.SERVER_IP)
#: Seconds before a command, and between it and what it prints at least.
_PAUSE_S, _READING_S = 1.2, 0.3


class Recorder:
    """Runs commands of a place and notes what they print, and when."""

    def __init__(self, place):
        self._place = place
        self._began_s = time.monotonic()
        self.shell, self.ping = [], []

    def _now(self):
        return time.monotonic() - self._began_s

    def run(self, where, words):
        """Run a command at the end of a pause."""
        time.sleep(_PAUSE_S)
        self._note(f'{where}# {shlex.join(words)}', drawing.COMMAND)
        time.sleep(_READING_S)
        done = self._place.run(where, words)
        for line in done.stdout.splitlines():
            self._note(line.expandtabs(), drawing.OUTPUT)
        for line in done.stderr.splitlines():
            self._note(line, drawing.FAULT)
        return done

    def _note(self, text, kind):
        self.shell.append(drawing.Line(self._now(), text, kind))

    def start_ping(self):
        """Start the ping, and a thread that notes its lines."""
        process = self._place.start(self._place.client, *_PING)
        self._lines = queue.SimpleQueue()
        threading.Thread(target=self._read, args=(process,),
                         daemon=True).start()
        return process

    def _read(self, process):
        for line in process.stdout:
            self._lines.put(drawing.Line(self._now(), line.strip(),
                                         drawing.OUTPUT))
        self._lines.put(None)

    def end_ping(self, process):
        """Stop the ping; its summary is a finding."""
        process.send_signal(signal.SIGINT)
        found = list(iter(self._lines.get, None))
        self.ping = [line for line in found if line.text]
        text = '\n'.join(line.text for line in found)
        # The last request may be under way, so it does not count.
        last = max(pings.answered(text), default=0)
        if lost := pings.judge(text, last).lost:
            raise errors.LabError(f'ping: {len(lost)} of {last} lost')


def record(place):
    """Run the script under a ping; return the recorder.

    :raises LabError: if the rule did not block, or a ping was lost
    """
    recorder = Recorder(place)
    ping = recorder.start_ping()
    done = [recorder.run(*step) for step in _SCRIPT]
    time.sleep(_PAUSE_S)
    recorder.end_ping(ping)
    statuses = [bool(each.returncode) for each in done]
    if statuses != [False, False, True, False, False, False]:
        raise errors.LabError(f'unexpected statuses: {statuses}')
    return recorder


def main():
    """Record and draw; 0 when all went as it should."""
    state = paths.State()
    prepare.process_host(state)
    try:
        with _place.opened(state) as place:
            place.create_guest()
            with log.step('recording'):
                made = record(place)
    except errors.LabError as e:
        log.warn(f'error: {e}')
        return 1
    PICTURE.write_text(drawing.draw(made.ping, made.shell))
    log.info(f'{PICTURE}: {PICTURE.stat().st_size} bytes')
    return 0


if __name__ == '__main__':
    sys.exit(main())
