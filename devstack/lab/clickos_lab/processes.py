# SPDX-License-Identifier: Apache-2.0
"""Starting and stopping services, each known by pid and start time."""

import contextlib
import dataclasses
import datetime
import os
import pathlib
import signal
import subprocess
import threading
import time

from clickos_lab import errors
from clickos_lab import shell

#: In the environment of everything a lab starts: what escaped its process
#: group is still found when the lab is taken down.
_MARK = 'CLICKOS_LAB_SERVICE_OF'


@dataclasses.dataclass(frozen=True)
class Running:
    """A process: its id alone could belong to another one later."""

    pid: int
    start_ticks: int

    def alive(self):
        """Return whether this very process still runs."""
        return start_ticks(self.pid) == self.start_ticks


def start_ticks(pid):
    """Return when a process began, proc(5) starttime; None if it is gone.

    A zombie counts as gone: it runs no code any more.
    """
    try:
        stat = pathlib.Path(f'/proc/{pid}/stat').read_text()
    except (OSError, UnicodeDecodeError):
        return None
    fields = stat.rpartition(')')[2].split()
    return None if fields[0] in 'ZX' else int(fields[19])


class Processes:
    """The processes of one lab."""

    def __init__(self, state):
        self._state = state
        self._mark = f'{_MARK}={state.root}'

    def start(self, name, arguments, env, cwd='/'):
        """Start a service in a session of its own, its output in a log.

        :returns: its process id
        """
        self._state.pid.mkdir(parents=True, exist_ok=True)
        with open(self.log(name), 'ab') as output:
            process = subprocess.Popen(
                [str(a) for a in arguments], stdin=subprocess.DEVNULL,
                stdout=output, stderr=subprocess.STDOUT,
                env={**env, _MARK: str(self._state.root)}, cwd=cwd,
                start_new_session=True)
        ticks = start_ticks(process.pid)
        (self._state.pid / name).write_text(f'{process.pid} {ticks}\n')
        return process.pid

    def log(self, name):
        """Return the log file of a service."""
        return self._state.log / f'{name}.log'

    def find(self, name):
        """Return the running process of a service, or None."""
        try:
            pid, ticks = (self._state.pid / name).read_text().split()
            found = Running(int(pid), int(ticks))
        except (OSError, ValueError):
            return None
        return found if found.alive() else None

    def started(self, name):
        """Return when a service was started, UTC."""
        stamp_s = (self._state.pid / name).stat().st_mtime
        return datetime.datetime.fromtimestamp(stamp_s, datetime.UTC)

    def require(self, name):
        """Fail if a service that was started has died.

        :raises LabError: with the end of its log.
        """
        if self.find(name) is None:
            raise errors.LabError(
                f'{name} died; see {self.log(name)}:\n'
                + shell.tail(self.log(name)))

    def names(self):
        """Return the services that run."""
        if not self._state.pid.is_dir():
            return []
        names = sorted(p.name for p in self._state.pid.iterdir())
        return [name for name in names if self.find(name)]

    def wait(self, name, ready, timeout_s=120):
        """Wait until a service answers; ready() tells.

        :raises LabError: if it dies or does not answer in time.
        """
        deadline_s = time.monotonic() + timeout_s
        while not ready():
            self.require(name)
            if time.monotonic() > deadline_s:
                raise errors.LabError(
                    f'{name} did not answer in {timeout_s} s; see '
                    f'{self.log(name)}:\n' + shell.tail(self.log(name)))
            time.sleep(0.1)

    def stop(self, names, timeout_s=6):
        """Stop services together: politely, then by force.

        Only a service's first process gets SIGTERM: tacker-conductor hangs
        if its worker gets one too; it may hang all the same.
        """
        found = {n: r for n in names if (r := self.find(n))}
        for running in found.values():
            _signal(os.kill, running.pid, signal.SIGTERM)
        _wait_gone(found.values(), timeout_s)
        for running in found.values():
            _signal(os.killpg, running.pid, signal.SIGKILL)
        _wait_gone(found.values(), 5)
        for name in names:
            (self._state.pid / name).unlink(missing_ok=True)

    def members(self, name):
        """Return the process ids of a service: its session's."""
        running = self.find(name)
        return [int(entry.name) for entry in pathlib.Path('/proc').iterdir()
                if entry.name.isdigit() and running
                and _session(entry) == running.pid]

    def kill(self, name, workers=False):
        """Kill a service's first process at once.

        :param workers: kill its process group too; else its children go on
        """
        running = self.find(name)
        if running:
            _signal(os.killpg if workers else os.kill, running.pid,
                    signal.SIGKILL)
            _wait_gone([running], 5)

    @contextlib.contextmanager
    def stopped(self, name):
        """Let no process of a service run meanwhile (SIGSTOP)."""
        stopped = set()
        try:
            # A process may fork until it has the signal.
            while new := set(self.members(name)) - stopped:
                stopped |= new
                for pid in new:
                    _signal(os.kill, pid, signal.SIGSTOP)
            yield
        finally:
            for pid in stopped:
                _signal(os.kill, pid, signal.SIGCONT)

    def strays(self, program):
        """Return what still runs of this lab, wherever it went.

        :param program: a program whose processes have no environment
        """
        found = []
        for entry in pathlib.Path('/proc').iterdir():
            if entry.name.isdigit() and int(entry.name) != os.getpid():
                pid = int(entry.name)
                ticks = start_ticks(pid)
                if ticks is not None and (self._is_marked(entry)
                                          or _runs(entry, program)):
                    found.append(Running(pid, ticks))
        return found

    def _is_marked(self, entry):
        try:
            variables = (entry / 'environ').read_bytes().split(b'\0')
        except OSError:
            return False
        return os.fsencode(self._mark) in variables

    def kill_strays(self, program):
        """Kill what stopping the services has left."""
        found = self.strays(program)
        for running in found:
            if running.alive():
                _signal(os.kill, running.pid, signal.SIGKILL)
        _wait_gone(found, 5)


def _session(entry):
    try:
        return os.getsid(int(entry.name))
    except OSError:
        return None


def _runs(entry, program):
    """Return whether a process runs a program, also one since replaced."""
    try:
        target = os.readlink(entry / 'exe')
    except OSError:
        return False
    return target.removesuffix(' (deleted)') == str(program)


def _signal(send, target, number):
    try:
        send(target, number)
    except ProcessLookupError:
        pass


def _wait_gone(processes, timeout_s):
    deadline_s = time.monotonic() + timeout_s
    while (any(p.alive() for p in processes)
           and time.monotonic() < deadline_s):
        time.sleep(0.05)


#: The signals that end a program of the lab, with a clean-up.
_ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def clean_up_at_signals():
    """Let each signal that ends this program do so by KeyboardInterrupt."""
    for number in _ENDING:
        signal.signal(number, signal.default_int_handler)


@contextlib.contextmanager
def undisturbed():
    """Ignore the signals that would end this process."""
    with _handling(signal.SIG_IGN):
        yield


@contextlib.contextmanager
def deferred():
    """Let the signals that would end this process wait for the block's end.

    The block makes something and registers its removal: no signal comes
    in between. Threads besides the main one get no signal anyway.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    seen = []
    with _handling(lambda number, _frame: seen.append(number)):
        yield
    if seen:
        signal.raise_signal(seen[0])


@contextlib.contextmanager
def _handling(handler):
    before = {number: signal.signal(number, handler) for number in _ENDING}
    try:
        yield
    finally:
        for number, old in before.items():
            signal.signal(number, old)
