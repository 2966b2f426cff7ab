# SPDX-License-Identifier: Apache-2.0
"""Shows that the tests of docs/promises.md fail when a bound is broken.

``python -m clickos_lab.suites.bounds [--all] [KEY ...]``, as root. For each
bound it runs the row's command twice. First with the true bounds: the command
has to pass. Then with a file in which this bound is out of reach: the command
has to fail with the key in its output. A promise whose command passes then is
void. Without a KEY the rows are those whose commands take minutes; --all adds
those that start a lab or a Xen host.
"""

import argparse
import contextlib
import dataclasses
import os
import pathlib
import subprocess
import sys
import tempfile
import time

from clickos_lab import bounds
from clickos_lab.checks import promises
from clickos_lab import errors
from clickos_lab import paths
from clickos_lab import prepare
from clickos_lab import processes
from clickos_lab import rust

#: Commands that begin so take minutes, with everything built.
_QUICK = ('cargo test', 'cd clickos-image/image ', 'make image',
          'python -m unittest ')
#: No measured value is that small, or that large.
_OUT_OF_REACH = {bounds.MAX: -10 ** 15, bounds.MIN: 10 ** 15}
_TIMEOUT_S = 4 * 3600
_PACKAGES = ('devstack/lab', 'interfaces', 'tacker-plugin', 'cosmos/python')
#: As the suite rust-tests builds them: tests start programs of other crates.
_BUILD = 'cargo build --workspace --locked --lib --bins --tests --examples'


@dataclasses.dataclass
class Done:
    """How a command ended."""

    status: int
    output: str
    seconds: float


def main(arguments):
    """Break the bounds in turn; 0 when each test noticed it."""
    processes.clean_up_at_signals()
    try:
        rows = _chosen(*_parse(arguments))
        state = paths.State()
        prepare.everything(state)
    except errors.LabError as error:
        print(f'error: {error}')
        return 2
    runner = Runner(state)
    if any(row.commands[0].startswith('cargo ') for row in rows):
        runner.build()
    results = [_result(row, runner) for row in rows]
    print('| bound | result | seconds |\n|---|---|---|')
    for row, (result, seconds) in zip(rows, results):
        print(f'| `{row.key}` | {result} | {seconds:.0f} |')
    bad = sum(result != NOTICED for result, _ in results)
    print(f'{len(rows)} bounds set out of reach, {bad} not noticed')
    return 1 if bad or not rows else 0


def _parse(arguments):
    parser = argparse.ArgumentParser(prog='clickos_lab.suites.bounds')
    parser.add_argument('--all', action='store_true',
                        help='also those that start a lab or a Xen host')
    parser.add_argument('keys', nargs='*', metavar='KEY')
    found = parser.parse_args(arguments)
    return found.keys, found.all


def _chosen(keys, is_all):
    """Return the rows with a bound that are to be tried.

    :raises LabError: if no row has one of the keys
    """
    text = (paths.REPO / promises.PAGE).read_text()
    rows = {row.key: row for row in promises.read(text) if row.key}
    if unknown := set(keys) - set(rows):
        raise errors.LabError(f'{promises.PAGE}: no row has the bound '
                              f'{", ".join(sorted(unknown))}')
    return [row for key, row in rows.items() if key in keys or not keys
            and (is_all or row.commands[0].startswith(_QUICK))]


NOTICED = 'noticed'


def _result(row, runner):
    """Run a row's command with its bound, and without; judge both."""
    command = row.commands[0]
    true = runner.with_true_bounds(command)
    if true.status:
        return _told(row, 'fails with the true bound', true)
    with broken(row.key) as file:
        found = runner.run(command, {bounds.VARIABLE: str(file)})
    if not found.status:
        return _told(row, f'VOID: passes, {" ".join(row.tests)}', found)
    if f'{row.key}: ' not in found.output:
        return _told(row, 'fails without the name of the bound', found)
    return _told(row, NOTICED, found)


def _told(row, result, done):
    print(f'{row.key}: {result} ({done.seconds:.0f} s)', flush=True)
    if result != NOTICED:
        print(done.output[-4000:], flush=True)
    return result, done.seconds


@contextlib.contextmanager
def broken(key):
    """Write all bounds to a file, one of them out of reach; yield it."""
    found = {**bounds.read(), key: _OUT_OF_REACH[key[:len(bounds.MAX)]]}
    with tempfile.TemporaryDirectory() as folder:
        # Tests read it under user ids of their own.
        os.chmod(folder, 0o755)  # nosec B103
        file = pathlib.Path(folder) / 'bounds.toml'
        file.write_text(''.join(f'{name} = {bound}\n'
                                for name, bound in found.items()))
        file.chmod(0o644)
        yield file


class Runner:
    """Runs commands of the page as it says."""

    def __init__(self, state):
        environment = rust.environment(state)
        self._environment = {
            **environment, 'PYTHONUNBUFFERED': '1',
            'CLICKOS_STATE': str(state.root),
            'NOXEN_PREFIX': str(state.noxen),
            'PATH': f'{state.venv}/bin:{environment["PATH"]}',
            'PYTHONPATH': ':'.join(str(paths.REPO / p) for p in _PACKAGES)}
        self._environment.pop(bounds.VARIABLE, None)
        self._true = {}

    def build(self):
        """Build what the tests in Rust start.

        :raises SystemExit: with the output of a build that failed
        """
        done = self.run(_BUILD)
        if done.status:
            sys.exit(done.output)

    def with_true_bounds(self, command):
        """Run a command, once for all rows that have it."""
        if command not in self._true:
            self._true[command] = self.run(command)
        return self._true[command]

    def run(self, command, more=()):
        """Run a command in the top folder of the repository."""
        began_s = time.monotonic()
        done = subprocess.run(
            ['bash', '-c', command], cwd=paths.REPO, text=True,
            errors='replace', stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            env={**self._environment, **dict(more)}, timeout=_TIMEOUT_S)
        return Done(done.returncode, done.stdout, time.monotonic() - began_s)


if __name__ == '__main__':
    sys.exit(main(sys.argv[1:]))
