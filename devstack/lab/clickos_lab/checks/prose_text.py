# SPDX-License-Identifier: Apache-2.0
"""Finds the prose of a file: lines of pages, comments and docstrings."""

import markdown_it
import pygments.lexers
from pygments import token
from pygments import util

_PAGES = ('.md',)
#: Files whose comments and docstrings are prose of ours.
_CODE = ('.rs', '.py', '.c', '.h', '.i', '.js', '.sh', '.toml', '.click',
         '.yaml')


def lines(name, text):
    """Return (number, text) of the lines of prose; none of other files."""
    if name.endswith(_PAGES):
        return list(_page(text))
    if name.endswith(_CODE) or text.startswith('#!'):
        return list(_code(name, text))
    return []


def _page(text):
    """Yield the lines of a page, without blocks of code."""
    code = set()
    for piece in markdown_it.MarkdownIt().parse(text):
        if piece.type in ('fence', 'code_block'):
            code.update(range(*piece.map))
    for at, line in enumerate(text.splitlines()):
        if at not in code:
            yield at + 1, line


def _code(name, text):
    """Yield the lines of comments and docstrings."""
    try:
        lexer = pygments.lexers.get_lexer_for_filename(
            name, text, stripnl=False, ensurenl=False)
    except util.ClassNotFound:
        lexer = pygments.lexers.get_lexer_by_name('bash', stripnl=False)
    number = 1
    for _, kind, value in lexer.get_tokens_unprocessed(text):
        if _is_comment(kind):
            yield from enumerate(value.splitlines(), number)
        number += value.count('\n')


def _is_comment(kind):
    return kind in token.String.Doc or (
        kind in token.Comment and kind not in token.Comment.Preproc
        and kind not in token.Comment.PreprocFile
        and kind not in token.Comment.Hashbang)
