# SPDX-License-Identifier: Apache-2.0
"""Runs the commands that documents give, on a demonstration that is kept.

These are the lines that the demonstration prints, and the blocks of pages.
The commands of a page run in one shell. The shell works in a copy of the
tree, so nothing is left behind; ``make`` works in the tree itself. An editor
that a page calls changes the file.

``python -m clickos_lab.suites.documents [--short] [--on-kept] [PAGE ...]``
"""

import argparse
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time

from clickos_lab import checks
from clickos_lab.documents import blocks
from clickos_lab.documents import console
from clickos_lab.documents import lists
from clickos_lab.documents import report as _report
from clickos_lab.documents import rules
from clickos_lab import errors
from clickos_lab import lab as _lab
from clickos_lab import log
from clickos_lab import paths
from clickos_lab import shell

SHORT = ('README.md',)
#: README comes last: a VNF of its own replaces that of the demonstration.
_FOLDERS = ('docs/user/', 'docs/operator/', 'vnfd-templates/')
_EDITOR, _EDIT = 'editor', '#!/bin/sh\necho "// changed" >>"$1"\n'
_MAKE = 'make() { command make -C %s "$@"; }'
_ENTER = '. .state/openrc-demo'
_START_S = 3600


def pages():
    """Return all pages whose blocks run, in order."""
    found = [name for name in checks.tracked() if name.endswith('.md')
             and name.startswith(_FOLDERS)]
    return (*found, *SHORT)


def start(state, host=''):
    """Start the demonstration as a person does; return what it prints.

    :raises LabError: if it fails
    """
    command = ['make', 'demo', 'KEEP=1', *([f'HOST={host}'] if host else [])]
    log_file = _printed(state)
    log_file.parent.mkdir(parents=True, exist_ok=True)
    with log.step(' '.join(command)), open(log_file, 'wb') as output:
        status = subprocess.run(
            command, cwd=paths.REPO, env=_environment(state),
            stdin=subprocess.DEVNULL, stdout=output,
            stderr=subprocess.STDOUT, timeout=_START_S).returncode
    if status:
        raise errors.LabError(f'{" ".join(command)}: exit status {status}; '
                              f'see {log_file}:\n{shell.tail(log_file)}')
    return log_file.read_text(errors='replace')


def run(state, wanted, short=False):
    """Run the usage and the blocks of pages on a demonstration that is up.

    :param short: without builds of many minutes
    :returns: the exit status
    """
    return Run(state, _printed(state).read_text(), short).all(wanted)


def _printed(state):
    """Return the file with what the kept demonstration has printed."""
    return state.log / 'documents-demo.log'


def _environment(state):
    """Return the environment of a person who has entered nothing."""
    venv = str(state.venv)
    path = os.environ['PATH'].split(os.pathsep)
    dropped = ('PYTHONPATH', 'MAKEFLAGS', 'MAKELEVEL', 'MFLAGS', 'GROUP',
               'CLICKOS_LAB_START', 'SUITES', 'VIRTUAL_ENV')
    kept = {name: value for name, value in os.environ.items()
            if name not in dropped and not name.startswith('OS_')}
    return {**kept, 'CLICKOS_STATE': str(state.root), 'PATH': os.pathsep.join(
        p for p in path if not p.startswith(venv))}


class Run:
    """One run on what a demonstration has printed."""

    def __init__(self, state, printed, short):
        self._state = state
        self._short = short
        self._usage = blocks.of_usage(printed)
        self._names = rules.names(self._usage, state)
        self._lists = lists.load()
        self._report = _report.Report()
        self._log = state.log / 'documents.log'

    def all(self, wanted):
        """Run the usage, then pages; return the exit status."""
        self.usage()
        found = []
        with tempfile.TemporaryDirectory(prefix='clickos-documents-') as name:
            folder = pathlib.Path(name)
            self._copy_tree(folder)
            for page in wanted:
                text = (paths.REPO / page).read_text()
                found += self._page(folder, blocks.of_page(page, text))
        for text in lists.stale(self._lists, found, wanted):
            self._report.fault(text)
        return self._report.finish()

    def usage(self):
        """Run the lines that the demonstration has printed."""
        with console.Console(paths.REPO, _environment(self._state),
                             self._log) as shell_:
            self._block(shell_, self._usage, self._usage.statements)

    def _page(self, folder, found):
        """Run the blocks of a page in the copy; return them."""
        env = {**_environment(self._state), 'EDITOR': str(folder / _EDITOR)}
        with console.Console(folder, env, self._log) as shell_:
            for line in (_MAKE % paths.REPO, _ENTER):
                shell_.run(line)
            for block in found:
                self._block(shell_, block, rules.named(block, self._names))
        return found

    def _copy_tree(self, folder):
        for name in checks.tracked():
            target = folder / name
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(paths.REPO / name, target)
        (folder / '.state').symlink_to(self._state.root)
        editor = folder / _EDITOR
        editor.write_text(_EDIT)
        editor.chmod(0o755)

    def _block(self, shell_, block, statements):
        key = block.page, block.name
        if reason := self._lists.left_out.get(key):
            self._report.left_out(block, reason)
            return
        began_s, why, ran = time.monotonic(), None, 0
        for statement in statements:
            reason = rules.not_run(statement, self._short)
            if reason:
                self._report.line_left_out(reason)
                continue
            ran += 1
            line_why = shell_.run(statement, rules.limit_s(statement))
            if line_why and not why:
                why = f'{statement.splitlines()[0]}: {line_why}'
        self._judge(block, key, why, ran, time.monotonic() - began_s)

    def _judge(self, block, key, why, ran, seconds):
        known = self._lists.failures.get(key)
        if why and known:
            self._report.known(block, known)
        elif why:
            self._report.fault(f'{block.page}:{block.line}: {why}; see '
                               f'{self._log}\n{shell.tail(self._log, 6)}')
        elif known and ran:
            self._report.fault(f'{block}: passes, so it has to leave '
                               f'{lists.FILE.name}')
        elif ran:
            self._report.passed(block, seconds)


def main():
    """Start the demonstration, run everything on it, stop it."""
    parser = argparse.ArgumentParser(prog='documents')
    parser.add_argument('--short', action='store_true',
                        help='README.md only, and no long builds')
    parser.add_argument('--on-kept', action='store_true',
                        help='the demonstration is up, and stays')
    parser.add_argument('pages', nargs='*', help='default: all')
    arguments = parser.parse_args()
    wanted = arguments.pages or (SHORT if arguments.short else pages())
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    state = paths.State()
    if arguments.on_kept:
        return run(state, wanted, arguments.short)
    try:
        start(state)
        status = run(state, wanted, arguments.short)
        return status if arguments.short else on_xen(state) or status
    except errors.LabError as e:
        print(f'error: {e}')
        return 1
    finally:
        _lab.Lab(state).down()


def on_xen(state):
    """Run what the demonstration on a Xen host prints, too."""
    _lab.Lab(state).down()
    start(state, 'xen')
    return run(state, ())


if __name__ == '__main__':
    sys.exit(main())
