# SPDX-License-Identifier: Apache-2.0
"""What long suites tell: where they are, what they saw, at which commit."""

import contextlib
import threading
import time

from clickos_lab import errors
from clickos_lab import paths
from clickos_lab import shell

_EVERY_S = 60
#: What the parts have seen, for the table at the end.
notes = []


def note(text):
    """Keep what was seen, and print it."""
    notes.append(text)
    print(f'  {text}', flush=True)


def commit():
    """Return the commit; a plus sign tells of changes since."""
    git = ['git', '-c', f'safe.directory={paths.REPO}', '-C', paths.REPO]
    commit = shell.output([*git, 'rev-parse', '--short', 'HEAD']).strip()
    changed = shell.output([*git, 'status', '--porcelain'])
    return commit + ('+' if changed else '')


@contextlib.contextmanager
def shown(dom0, what, script):
    """While the block runs, print each minute what a script in dom0 tells.

    :param script: prints how much is done
    """
    over = threading.Event()
    thread = threading.Thread(target=_show, args=(dom0, what, script, over))
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def _show(dom0, what, script, over):
    began_s = time.monotonic()
    while not over.wait(_EVERY_S):
        minutes = (time.monotonic() - began_s) / 60
        print(f'  {minutes:.0f} min: {_done(dom0, script)} {what}', flush=True)


def _done(dom0, script):
    try:
        return dom0.run(script).out.strip()
    except errors.LabError as e:
        return f'({e})'
