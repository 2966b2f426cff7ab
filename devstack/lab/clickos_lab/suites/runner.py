# SPDX-License-Identifier: Apache-2.0
"""Runs suites, shows how far they are, and prints a table at the end."""

import concurrent.futures
import dataclasses
import itertools
import os
import queue
import re
import signal
import subprocess
import threading
import time

from clickos_lab import errors
from clickos_lab import log
from clickos_lab import paths
from clickos_lab.suites import again

_HEARTBEAT_S = 20
#: what begins a line and is not worth a terminal's width: a suite's own
#: clock, a worker's number and a test's modules
_LEAD = re.compile(r'^\[ *[\d.]+ s\] |^\{\d+\} (\w+\.)*(?=\w+\.\w+ )')
_CLEAN_UP_S = 60
#: Suites that run in parallel.
_AT_ONCE = 2
#: lines that name a failed test: of cargo, unittest and stestr
_FAILED_TEST = re.compile(
    r'^test .* \.\.\. FAILED$|^error: \S+: hangs$|'
    r'\.\.\. (FAIL|ERROR)$|^(FAIL|ERROR): |'
    r' \[[\d.]+s\] \.\.\. FAILED$')
#: lines that say why: an exception's, a panic's, which continues in the next
_REASON = re.compile(r"^ *([\w.]+\.)?\w*(Error|Exception|Failure|Timeout)\b|"
                     r"^thread '.*' .*panicked at ")
_FAILED_TESTS_SHOWN = 10
#: Suites in other threads have to end.
_INTERRUPTED = threading.Event()


@dataclasses.dataclass(frozen=True)
class Suite:
    """A command that passes when it exits with 0."""

    name: str
    command: list
    env: dict = dataclasses.field(default_factory=dict)
    #: lines of its output that are worth showing
    show: str = '(?!)'
    #: with which a passing run must have printed a line, so that a suite
    #: that found no test does not pass
    required_output: str | None = None
    #: with which no line may be printed: a skipped test did not pass
    forbidden_output: str | None = None
    timeout_s: int = 1800
    #: whether it runs in parallel with the next ones that do
    runs_in_parallel: bool = False


@dataclasses.dataclass(frozen=True)
class Outcome:
    """How a suite ended."""

    name: str
    passed: bool
    seconds: float
    note: str
    #: the first lines of the log that name failed tests, and the reason
    #: that follows each
    failed_tests: tuple = ()
    #: the tests that failed and passed when they ran again alone
    again: tuple = ()


def run_all(suites, log_folder, env):
    """Run suites in order, all of them; return an outcome for each."""
    def run(numbered):
        number, suite = numbered
        log.info(f'suite {number} of {len(suites)}: {suite.name}')
        outcome = _run(suite, log_folder / f'test-{suite.name}.log', env)
        log.info(f'suite {suite.name}: '
                 f'{"passed" if outcome.passed else "FAILED"} in '
                 f'{outcome.seconds:.1f} s {outcome.note}')
        return outcome

    outcomes = []
    for runs_in_parallel, group in itertools.groupby(
            enumerate(suites, 1), lambda pair: pair[1].runs_in_parallel):
        outcomes += _in_parallel(run, group) if runs_in_parallel else map(
            run, group)
    return outcomes


def _in_parallel(run, suites):
    """Run suites, some at a time; an interrupt ends these."""
    with concurrent.futures.ThreadPoolExecutor(_AT_ONCE) as pool:
        runs = [pool.submit(run, suite) for suite in suites]
        try:
            return [each.result() for each in runs]
        except BaseException:
            _INTERRUPTED.set()
            pool.shutdown(cancel_futures=True)
            raise
        finally:
            _INTERRUPTED.clear()


def _run(suite, log_file, env):
    began_s = time.monotonic()
    unsteady = []
    try:
        note = _execute(suite, log_file, {**env, **suite.env}, unsteady)
    except OSError as e:
        note = f'{suite.command[0]}: {e.strerror}'
    except errors.LabError as e:
        note = str(e)
    return Outcome(suite.name, note is None, time.monotonic() - began_s,
                   note or '', _failed_tests(log_file) if note else (),
                   tuple(unsteady))


def _execute(suite, log_file, env, unsteady):
    """Run a suite's command; return None or why it failed.

    :param unsteady: takes the tests that passed only when run again
    """
    with open(log_file, 'wb', buffering=0) as output:
        # A run in the background ignores Ctrl-C, and so would all its tests.
        process = subprocess.Popen(
            ['env', '--default-signal=INT', *map(str, suite.command)],
            cwd=paths.REPO, env=env,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, start_new_session=True)
        try:
            lines = _follow(process, suite, output)
            status = process.wait(timeout=30)
        except (subprocess.TimeoutExpired, errors.LabError) as e:
            return f'{e}; see {log_file}'
        finally:
            _end_session(process)
    if status != 0:
        return f'exit status {status}; see {log_file}\n{_last(log_file)}'
    wanted, unwanted = suite.required_output, suite.forbidden_output
    if wanted and not any(re.search(wanted, n) for n in lines):
        return f'ran no tests (no line like {wanted!r}); see {log_file}'
    unsteady += filter(None, map(again.named, lines))
    found = [n for n in lines if unwanted and re.search(unwanted, n)]
    return f'{found[0].strip()}; see {log_file}' if found else None


def _follow(process, suite, output):
    """Log the output, show what is worth it, keep proofs, faults, marks."""
    deadline_s = time.monotonic() + suite.timeout_s
    silent_since_s = time.monotonic()
    lines = lines_of(process.stdout)
    kept = []
    while (now_s := time.monotonic()) < deadline_s:
        if _INTERRUPTED.is_set():
            raise errors.LabError('interrupted')
        if now_s - silent_since_s > _HEARTBEAT_S:
            silent_since_s = now_s
            log.info(f'  {suite.name} is still at work')
        try:
            line = lines.get(timeout=1)
        except queue.Empty:
            # A process left behind could hold the pipe open for ever.
            if process.poll() is not None:
                return kept
            continue
        if line is None:
            return kept
        output.write(line)
        text = line.decode(errors='replace').rstrip()
        if re.search(suite.show, text):
            silent_since_s = now_s
            log.info(f'  {suite.name}: {_LEAD.sub("", text)[:110]}')
        if again.named(text) or any(
                p and re.search(p, text)
                for p in (suite.required_output, suite.forbidden_output)):
            kept.append(text)
    raise errors.LabError(f'not done after {suite.timeout_s} s')


def lines_of(pipe):
    """Return a queue that gets the lines of a pipe, and None at its end."""
    lines = queue.SimpleQueue()
    threading.Thread(target=_read, args=(pipe, lines), daemon=True).start()
    return lines


def _read(pipe, lines):
    with pipe:
        for line in pipe:
            lines.put(line)
    lines.put(None)


def _end_session(process):
    """Nothing a suite has started outlives it; it may clean up first."""
    process.terminate()
    try:
        process.wait(_CLEAN_UP_S)
    except subprocess.TimeoutExpired:
        pass
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    process.wait()


def _last(log_file, lines=25):
    text = log_file.read_text(errors='replace').splitlines()[-lines:]
    return '\n'.join('    ' + line[:200] for line in text)


def _failed_tests(log_file):
    found, unexplained = {}, None
    lines = log_file.read_text(errors='replace').splitlines()
    for line, following in zip(lines, [*lines[1:], '']):
        text = line.strip()[:200]
        if _FAILED_TEST.search(line):
            found[text] = found.get(text)
            unexplained = text
        elif unexplained and _REASON.search(line):
            if ' panicked at ' in line:
                text = f'{text} {following.strip()[:200]}'
            found[unexplained] = found[unexplained] or f'    {text}'
            unexplained = None
    pairs = list(found.items())[:_FAILED_TESTS_SHOWN]
    return tuple(line for pair in pairs for line in pair if line)


def report(outcomes, total_s):
    """Print the table, the failed tests and those that passed alone.

    :returns: 0 when all passed, else 1
    """
    width = max(len(o.name) for o in outcomes)
    print(f'\n{"suite":<{width}}  result  seconds')
    for o in outcomes:
        print(f'{o.name:<{width}}  {"passed" if o.passed else "FAILED":<6}  '
              f'{o.seconds:7.1f}')
    failed = [o for o in outcomes if not o.passed]
    print(f'{"all":<{width}}  {"FAILED" if failed else "passed":<6}  '
          f'{total_s:7.1f}\n')
    for o in failed:
        print(f'{o.name}: {o.note.splitlines()[0]}')
        for line in o.failed_tests:
            print(f'    {line}')
    for o in outcomes:
        for name in o.again:
            print(f'{o.name}: {again.MARK}{name}; commit '
                  f'{again.LIST.relative_to(paths.REPO)}')
    print(f'{len(outcomes) - len(failed)} passed, {len(failed)} failed',
          flush=True)
    return 1 if failed else 0
