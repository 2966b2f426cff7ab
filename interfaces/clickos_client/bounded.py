# SPDX-License-Identifier: Apache-2.0
"""Runs a function on a tenant's bytes as a process of its own, with limits.

A parser that a text has taken over ends with that process. The parent waits
only, so a green thread of eventlet does not stop the others.

The function takes bytes and returns what JSON can hold. The limit on
processor time begins when the modules of the function are imported; the
function may import more within unmetered().
"""

import contextlib
import dataclasses
import importlib
import json
import math
import os
import resource
import signal
import subprocess
import sys
import tempfile
import time

#: How far it yields to the services: it has a third of their weight. With 10,
#: a review of 3 s took over 60 s next to four busy processes.
_NICE = 5
#: Bytes of each file that the process writes.
_FILE_BYTES = 64 * 1024 * 1024
_ANSWER_BYTES = 4 * 1024 * 1024
#: Seconds between two looks whether the process has ended, at most.
_LOOK_S = 0.05
_ENVIRONMENT = ('PATH', 'PYTHONPATH', 'LANG', 'LC_ALL', 'TMPDIR')


@dataclasses.dataclass(frozen=True)
class Limits:
    """The limits of one call.

    :param cpu_s: seconds of processor time, without the imports
    :param memory_bytes: address space
    :param wall_s: seconds until the parent ends the process
    """

    cpu_s: float = 2
    memory_bytes: int = 1 << 30
    wall_s: float = 60


class Exceeded(Exception):
    """The process ended without an answer; the text says at which limit."""


def call(function, file, limits=Limits()):
    """Return what the function returns for the bytes of a file.

    :param function: its place as text, 'package.module:name'
    :param file: an open file with a descriptor, at its begin
    :raises: Exceeded
    """
    command = [_python(), '-P', '-m', 'clickos_client.bounded', function,
               repr(limits.cpu_s), str(limits.memory_bytes), str(_NICE)]
    with _unchangeable(file) as given, tempfile.TemporaryFile() as answer:
        process = subprocess.Popen(
            command, stdin=given, stdout=answer, stderr=subprocess.DEVNULL,
            env=_environment(), start_new_session=True)
        try:
            _wait(process, limits.wall_s)
        finally:
            _end(process)
        if process.returncode:
            raise Exceeded(_reason(process.returncode, limits))
        return _read(answer)


def call_on_bytes(function, content, limits=Limits()):
    """Return what the function returns for these bytes; see call()."""
    with tempfile.TemporaryFile() as file:
        file.write(content)
        file.seek(0)
        return call(function, file, limits)


def run(command, text, error, limits=Limits()):
    """Run a program on a tenant's text, as programs.run() does.

    :returns: subprocess.CompletedProcess with text
    :param error: the exception for a program that does not run or end
    """
    with tempfile.TemporaryFile() as given, \
            tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        given.write(text.encode(errors='replace'))
        given.seek(0)
        try:
            process = subprocess.Popen(
                [*_bounds(limits), *command], stdin=given, stdout=out,
                stderr=err, env=_environment(), start_new_session=True)
        except OSError as exc:
            raise error(f'{command[0]}: {exc.strerror}')
        try:
            _wait(process, limits.wall_s)
        except Exceeded as exceeded:
            raise error(f'{command[0]}: {exceeded}')
        finally:
            _end(process)
        return subprocess.CompletedProcess(
            command, process.returncode, *map(_text, (out, err)))


def _environment():
    return {name: os.environ[name] for name in _ENVIRONMENT
            if name in os.environ}


def _bounds(limits):
    """Return the command that runs another one within limits."""
    return ('nice', '-n', str(_NICE), 'prlimit',
            f'--as={limits.memory_bytes}',
            f'--cpu={math.ceil(limits.cpu_s)}', f'--fsize={_FILE_BYTES}',
            '--core=0', '--nproc=0', '--')


def _text(file):
    file.seek(0)
    return file.read(_ANSWER_BYTES).decode(errors='replace')


@contextlib.contextmanager
def unmetered():
    """Count no processor time within: for imports that a first call needs."""
    left, _again = signal.setitimer(signal.ITIMER_PROF, 0)
    try:
        yield
    finally:
        if left:
            signal.setitimer(signal.ITIMER_PROF, left)


def main(arguments=None):
    """Answer one call, as the process of its own.

    A service of before 1.0 that still runs during an upgrade names no
    niceness.
    """
    place, cpu_s, memory_bytes, *nice = arguments or sys.argv[1:]
    os.nice(int(nice[0]) if nice else _NICE)
    _limit(resource.RLIMIT_AS, int(memory_bytes))
    _limit(resource.RLIMIT_FSIZE, _FILE_BYTES)
    _limit(resource.RLIMIT_CORE, 0)
    _limit(resource.RLIMIT_NPROC, 0)    # no further process, but for root
    module, _colon, name = place.partition(':')
    function = getattr(importlib.import_module(module), name)
    signal.signal(signal.SIGPROF, signal.SIG_DFL)
    signal.setitimer(signal.ITIMER_PROF, float(cpu_s))
    with _answer() as answer:
        text = json.dumps(function(sys.stdin.buffer.read()))
        if len(text) > _ANSWER_BYTES:
            return 1
        answer.write(text)
    return 0


def _answer():
    """Return the file of the answer; what a library prints goes nowhere."""
    answer = os.fdopen(os.dup(sys.stdout.fileno()), 'w')
    with open(os.devnull, 'w') as nowhere:
        os.dup2(nowhere.fileno(), sys.stdout.fileno())
    return answer


def _limit(kind, value):
    _soft, hard = resource.getrlimit(kind)
    if hard != resource.RLIM_INFINITY:
        value = min(value, hard)
    resource.setrlimit(kind, (value, value))


def _unchangeable(file):
    """Open a file again, to read: the caller continues with what was judged.

    :param file: at its begin
    """
    return open('/proc/self/fd/%d' % file.fileno(), 'rb')


def _wait(process, wall_s):
    """Wait until a process ends, and leave its id to it.

    :raises: Exceeded
    """
    deadline_s, pause_s = time.monotonic() + wall_s, 0.001
    while not os.waitid(os.P_PID, process.pid,
                        os.WEXITED | os.WNOHANG | os.WNOWAIT):
        if time.monotonic() >= deadline_s:
            raise Exceeded('took more than %g s' % wall_s)
        time.sleep(pause_s)
        pause_s = min(2 * pause_s, _LOOK_S)


def _end(process):
    """End a process and those that it started, also if it ended before.

    No other process has its id until wait() takes it. So the group is its own.
    """
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _read(answer):
    """Return the value in a file, which such a process may have written."""
    answer.seek(0)
    try:
        return json.loads(answer.read(_ANSWER_BYTES))
    except (ValueError, RecursionError):
        raise Exceeded('gave no answer that can be read')


def _reason(status, limits):
    if status == -signal.SIGPROF:
        return 'took more than %g s of processor time' % limits.cpu_s
    return 'ended with status %d; it has %g s of processor time and %d MiB' % (
        status, limits.cpu_s, limits.memory_bytes >> 20)


def _python():
    """Return the interpreter; under uWSGI sys.executable is uWSGI."""
    name = os.path.basename(sys.executable or '')
    return (sys.executable if name.startswith('python')
            else os.path.join(sys.prefix, 'bin', 'python3'))


if __name__ == '__main__':
    sys.exit(main())
