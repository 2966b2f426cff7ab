# SPDX-License-Identifier: Apache-2.0
"""Finds what a page tells people to type.

A fenced block without a language, or of one of :data:`CONSOLE`, is for a
shell. Any other text in a fence names its language.
"""

import dataclasses
import re
import subprocess

import markdown_it

#: Languages of blocks that a shell runs.
CONSOLE = ('', 'bash', 'console', 'sh')
_COMMENT = re.compile(r'\s+#\s.*$')
#: What a demonstration prints before its indented commands, and after them.
_BEGIN, _END = 'Everything is still running', 'make lab-down'


@dataclasses.dataclass(frozen=True)
class Block:
    """The commands of a block, each a whole statement of bash.

    ``name`` is the first line without its comment: it tells the block from
    the others of its page.
    """

    page: str
    line: int
    statements: tuple

    @property
    def name(self):
        """Return what the lists call the block."""
        return _COMMENT.sub('', self.statements[0].splitlines()[0])

    def __str__(self):
        return f'{self.page}:{self.line}: {self.name}'


def of_page(page, text):
    """Return the blocks of a page that a shell runs, in order."""
    found = []
    for token in markdown_it.MarkdownIt().parse(text):
        language = token.info.strip()
        if token.type == 'fence' and language in CONSOLE:
            commands = statements(token.content)
            if commands:
                found.append(Block(page, token.map[0] + 1, commands))
    return found


def of_usage(printed):
    """Return the block that a kept demonstration has printed.

    :raises ValueError: if it has printed none
    """
    _, found, rest = printed.partition(_BEGIN)
    usage, ended, _ = rest.partition(f'\n{_END}')
    lines = [line.strip() for line in usage.splitlines()
             if line.startswith('  ')]
    if not (found and ended and lines):
        raise ValueError('the demonstration has printed no usage')
    return Block('usage', 1, statements('\n'.join(lines)))


def statements(text):
    """Split a script into statements of bash; comments alone do not count."""
    found, lines = [], []
    for line in text.splitlines():
        if not lines and (not line.strip() or line.lstrip().startswith('#')):
            continue
        lines.append(line)
        if _is_whole('\n'.join(lines)):
            found.append('\n'.join(lines))
            lines = []
    if lines:
        # It cannot run: bash says so, as it does to a person.
        found.append('\n'.join(lines))
    return tuple(found)


def _is_whole(text):
    """Return whether bash would run a text now, not wait for a next line."""
    if text.endswith('\\'):
        return False
    done = subprocess.run(['bash', '-n'], input=text, text=True,
                          capture_output=True)
    return done.returncode == 0 and not done.stderr
