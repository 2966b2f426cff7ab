# SPDX-License-Identifier: Apache-2.0
"""Runs engines and takes their processor time."""

import contextlib
import dataclasses
import os
import pathlib
import re
import signal
import statistics
import subprocess
import tempfile

# A run is over after its time on an idle machine, its start, and this
# factor for a busy one.
PATIENCE = 20
START_S = 30
ATTEMPTS = 3


class EngineError(Exception):
    """An engine could not run a configuration."""


@dataclasses.dataclass
class Engine:
    """A program that runs `FILE NAME=VALUE -h HANDLER` as click does."""

    name: str
    path: pathlib.Path

    @classmethod
    def parse(cls, text):
        """Make an engine of NAME=PATH."""
        name, _, path = text.partition('=')
        path = pathlib.Path(path).resolve()
        program = path.is_file() and os.access(path, os.X_OK)
        if not name or not program:
            raise ValueError('expected NAME=PATH of a program, got "%s"'
                             % text)
        return cls(name, path)


@dataclasses.dataclass
class Run:
    """The result of one run."""

    packets: int
    cpu_s: float


def run(engine, configuration, seconds, cpu):
    """Run a configuration file once.

    :raises EngineError: it ended with an error, counted nothing, or hung.
    """
    command = [engine.path, configuration.name, 'T=%g' % seconds, '-h',
               'd.count']
    with tempfile.TemporaryFile('w+') as errors:
        process = subprocess.Popen(
            command, cwd=configuration.parent, stdout=subprocess.PIPE,
            stderr=errors, text=True)
        os.sched_setaffinity(process.pid, {cpu})
        output, usage = wait(process, START_S + PATIENCE * seconds)
        counts = re.findall(r'\d+', output)
        if process.returncode or not counts:
            raise EngineError(reason(process.returncode, errors))
    return Run(int(counts[-1]), usage.ru_utime + usage.ru_stime)


def wait(process, limit_s):
    """Wait for a process; return its output and what it used.

    The output is one number, so it fits into the pipe.
    """
    with deadline(process, limit_s):
        _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    with process.stdout:
        return process.stdout.read(), usage


@contextlib.contextmanager
def deadline(process, limit_s):
    """Kill a process that is not done in time."""
    before = signal.signal(signal.SIGALRM, lambda *_: process.kill())
    signal.setitimer(signal.ITIMER_REAL, limit_s)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def reason(status, errors):
    """Return in a line why a run failed."""
    errors.seek(0)
    said = ' | '.join(errors.read().split('\n')).strip(' |')[:160]
    if status == -signal.SIGKILL:
        return 'killed: not done in time, or out of memory'
    return said or 'exit status %d, no count' % status


def packet_ns(engine, path, configuration, cpu):
    """Return nanoseconds of processor time for one more packet.

    On a machine busy with other things a long run may get less done than
    a short one; then both are repeated.
    """
    for _ in range(ATTEMPTS):
        short = run(engine, path, configuration.short_s, cpu)
        long = run(engine, path, configuration.long_s, cpu)
        packets = long.packets - short.packets
        if packets > 0 and long.cpu_s > short.cpu_s:
            return (long.cpu_s - short.cpu_s) / packets * 1e9
    raise EngineError('counted %d packets in %g s and %d in %g s' % (
        short.packets, configuration.short_s, long.packets,
        configuration.long_s))


def compare(engines, path, configuration, runs, cpu):
    """Return for each engine its median time of a packet, or the error.

    The engines take turns, so that a busy moment hits all of them.
    """
    times = {engine.name: [] for engine in engines}
    errors = {}
    for _ in range(runs):
        for engine in engines:
            if engine.name in errors:
                continue
            try:
                times[engine.name].append(
                    packet_ns(engine, path, configuration, cpu))
            except EngineError as error:
                errors[engine.name] = error
    return {name: errors.get(name) or statistics.median(measured)
            for name, measured in times.items()}
