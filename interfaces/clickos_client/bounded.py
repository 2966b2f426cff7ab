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
import os
import resource
import signal
import subprocess
import sys
import tempfile

_NICE = 10
#: Bytes of each file that the process writes.
_FILE_BYTES = 64 * 1024 * 1024
_ANSWER_BYTES = 4 * 1024 * 1024
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
               repr(limits.cpu_s), str(limits.memory_bytes)]
    environment = {name: os.environ[name] for name in _ENVIRONMENT
                   if name in os.environ}
    with tempfile.TemporaryFile() as answer:
        process = subprocess.Popen(
            command, stdin=file, stdout=answer, stderr=subprocess.DEVNULL,
            env=environment, start_new_session=True)
        try:
            process.wait(limits.wall_s)
        except subprocess.TimeoutExpired:
            raise Exceeded('took more than %g s' % limits.wall_s)
        finally:
            _end(process)
        if process.returncode:
            raise Exceeded(_reason(process.returncode, limits))
        answer.seek(0)
        return json.loads(answer.read(_ANSWER_BYTES))


def call_on_bytes(function, content, limits=Limits()):
    """Return what the function returns for these bytes; see call()."""
    with tempfile.TemporaryFile() as file:
        file.write(content)
        file.seek(0)
        return call(function, file, limits)


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
    """Answer one call, as the process of its own."""
    place, cpu_s, memory_bytes = arguments or sys.argv[1:]
    os.nice(_NICE)
    _limit(resource.RLIMIT_AS, int(memory_bytes))
    _limit(resource.RLIMIT_FSIZE, _FILE_BYTES)
    _limit(resource.RLIMIT_CORE, 0)
    module, _colon, name = place.partition(':')
    function = getattr(importlib.import_module(module), name)
    signal.signal(signal.SIGPROF, signal.SIG_DFL)
    signal.setitimer(signal.ITIMER_PROF, float(cpu_s))
    text = json.dumps(function(sys.stdin.buffer.read()))
    if len(text) > _ANSWER_BYTES:
        return 1
    sys.stdout.write(text)
    return 0


def _limit(kind, value):
    _soft, hard = resource.getrlimit(kind)
    if hard != resource.RLIM_INFINITY:
        value = min(value, hard)
    resource.setrlimit(kind, (value, value))


def _end(process):
    """End what still runs, with the processes that it may have started."""
    if process.poll() is None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


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
