# SPDX-License-Identifier: Apache-2.0
"""The entry points of all packages, listed once for all services.

stevedore keeps such a list in the home of a user. A service's home is empty
at each start, so each service would read some 300 packages for it: a second
of processor time. Only root can write this list.
"""

import os
import shutil

from clickos_lab import log
from clickos_lab import shell
from clickos_lab import stamps

#: Where uWSGI's Python looks for modules before its own folders.
_OF_UWSGI = ['.', '']
#: stevedore finds a list by the interpreter, the folders it looks for
#: modules in, and their times.
_LIST = """
import sys
from stevedore import _cache
sys.executable, *first = sys.argv[1:]
_cache.Cache().get_group_all('', path=(*first, *sys.path[1:]))
"""


def folder(state):
    """Return the folder that stevedore takes for a user's cache."""
    return state.venv / 'entry-points'


def ensure(state):
    """List the entry points, if packages changed."""
    programs = state.venv / 'bin'
    wanted = stamps.digest(
        (state.venv / name for name in ('requirements.stamp', 'ours.stamp')),
        *(str(place.stat().st_mtime) for place in (
            programs, *state.venv.glob('lib/python*/site-packages'))))
    stamp = state.venv / 'entry-points.stamp'
    if stamps.fresh(stamp, wanted):
        return
    with log.step('entry points'):
        shutil.rmtree(folder(state), ignore_errors=True)
        _list(state, 'python', [programs])
        _list(state, 'uwsgi', _OF_UWSGI)
        for path in (folder(state), *folder(state).rglob('*')):
            path.chmod(0o755 if path.is_dir() else 0o644)
        stamp.write_text(wanted)


def _list(state, program, first):
    """List them as a program finds them that starts in an empty folder."""
    start = folder(state) / 'empty'
    start.mkdir(parents=True, exist_ok=True)
    same_time(start)
    shell.run([state.tool('python'), '-c', _LIST, state.tool(program),
               *first], state.log / 'venv.log', cwd=start,
              env=shell.environment(state, XDG_CACHE_HOME=folder(state)))


def same_time(start):
    """Give the folder that a service starts in the time of all such."""
    os.utime(start, (0, 0))
