# SPDX-License-Identifier: Apache-2.0
"""The difference of two configurations, in bounded work.

Both texts are a tenant's. The program diff compares them as a process of its
own. Its heuristics keep the work below lines times a constant, and a limit
on processor time ends it. Then the lines between the first and the last
difference are shown as replaced as a whole.
"""

import dataclasses
import itertools
import tempfile

from clickos_client import programs

PROGRAM = 'diff'
MAX_BYTES = 256 * 1024
#: Lines that a page shows.
MOST_LINES = 2000
CPU_S = 2
_BOUNDS = ('prlimit', '--as=1073741824', f'--cpu={CPU_S}', '--nofile=16',
           '--core=0', '--')
_OPTIONS = ('--unified', '--text', '--label', 'running', '--label', 'edited',
            '--')
_RETURN = '\N{SYMBOL FOR CARRIAGE RETURN}'
_KINDS = {'+': 'added', '-': 'removed', '@': 'place'}
#: Statuses of diff: the texts are equal, or differ.
_ANSWERS = (0, 1)


class TooLong(Exception):
    """A text has more than MAX_BYTES."""


class _NoAnswer(Exception):
    """The program did not run or was ended."""


@dataclasses.dataclass(frozen=True)
class Difference:
    """The lines that a page shows.

    :ivar lines: [(kind, line)], none if the texts are equal
    :ivar omitted: how many lines more there are
    :ivar is_coarse: tells whether all between the first and the last
        difference is shown as replaced
    """

    lines: list
    omitted: int
    is_coarse: bool


def between(running, edited):
    """Return the Difference of two texts.

    :raises TooLong: if one has more than MAX_BYTES
    """
    old, new = _ended(running), _ended(edited)
    if max(len(old), len(new)) > MAX_BYTES:
        raise TooLong()
    try:
        lines, is_coarse = _by_program(old, new), False
    except _NoAnswer:
        lines, is_coarse = _as_a_whole(old, new), True
    shown = [(_KINDS.get(line[:1], 'same'), line)
             for line in itertools.islice(lines, MOST_LINES)]
    return Difference(shown, max(0, len(lines) - MOST_LINES), is_coarse)


def _ended(text):
    """Return a text's bytes with an end of line after the last line.

    A lone carriage return is shown as its picture. Else the rest of its line
    would stand below as a line of its own, with any mark in front.
    """
    text = text.replace('\r\n', '\n').replace('\r', _RETURN)
    if text and not text.endswith('\n'):
        text += '\n'
    return text.encode(errors='replace')


def _by_program(old, new):
    with tempfile.NamedTemporaryFile() as first, \
            tempfile.NamedTemporaryFile() as second:
        for file, content in ((first, old), (second, new)):
            file.write(content)
            file.flush()
        done = programs.run([*_BOUNDS, PROGRAM, *_OPTIONS, first.name,
                             second.name], '', _NoAnswer)
    if done.returncode not in _ANSWERS:
        raise _NoAnswer()
    return done.stdout.split('\n')[:-1]


def _as_a_whole(old, new):
    """Return the lines of a difference with one replaced part."""
    olds, news = _lines(old), _lines(new)
    before = _common(olds, news)
    after = min(_common(olds[::-1], news[::-1]),
                len(olds) - before, len(news) - before)
    olds = olds[before:len(olds) - after]
    news = news[before:len(news) - after]
    if not olds and not news:
        return []
    return ['--- running', '+++ edited',
            f'@@ -{before + 1},{len(olds)} +{before + 1},{len(news)} @@',
            *('-' + line for line in olds), *('+' + line for line in news)]


def _lines(content):
    return content.decode(errors='replace').split('\n')[:-1]


def _common(olds, news):
    """Count the equal lines at the beginning."""
    pairs = itertools.takewhile(lambda pair: pair[0] == pair[1],
                                zip(olds, news))
    return sum(1 for _pair in pairs)
