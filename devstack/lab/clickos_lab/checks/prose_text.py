# SPDX-License-Identifier: Apache-2.0
"""Finds the prose of a file: paragraphs of pages, comments and messages."""

import dataclasses
import re
import textwrap

import markdown_it
import pygments.lexers
from pygments import token
from pygments import util

_PAGES = ('.md',)
#: Files whose comments and strings are prose of ours.
_CODE = ('.rs', '.py', '.c', '.h', '.i', '.sh', '.toml', '.click', '.yaml')
#: What a list of tokens, a table or code leaves of a sentence.
_CODE_WORD = 'code'
_COMMENT = re.compile(r'^[ \t]*(//[/!]?|/\*+!?|\*+/|\*(?= |$)|#+!?) ?')
_FIELD = re.compile(r'^\s*(:\w+|- |\* |SPDX-)')
_TESTS = re.compile(r'^#\[cfg\(test\)\]', re.MULTILINE)
_PLAIN_WORD = re.compile(
    r"[A-Za-z'][A-Za-z'-]*[.,;:!?)]*|[({][\w .:?]*[)}]?\S*")
#: Of a string's words, as a share: what has fewer is data, not prose.
_PROSE_SHARE = 0.8


@dataclasses.dataclass(frozen=True)
class Paragraph:
    """One paragraph without markup, and the line it begins on."""

    line: int
    text: str


def paragraphs(name, text):
    """Return the paragraphs of a file; none of a kind that is not read."""
    if name.endswith(_PAGES):
        return list(_markdown(text, 1))
    if name.endswith(_CODE) or text.startswith('#!'):
        return list(_code(name, text))
    return []


def _markdown(text, first_line):
    """Yield the paragraphs of a page, without code and tables' heads."""
    inside_head = False
    for piece in markdown_it.MarkdownIt().enable('table').parse(text):
        if piece.type in ('thead_open', 'thead_close'):
            inside_head = piece.type == 'thead_open'
        if piece.type == 'inline' and not inside_head:
            yield Paragraph(first_line + piece.map[0], _words(piece))


def _words(piece):
    """Return an inline piece as text; code and pictures are one word."""
    words = []
    for child in piece.children:
        if child.type == 'code_inline':
            words.append(_CODE_WORD)
        elif child.type in ('softbreak', 'hardbreak'):
            words.append(' ')
        elif child.type == 'text':
            words.append(child.content)
    return ''.join(words)


def _code(name, text):
    """Yield what comments, docstrings and messages say."""
    try:
        lexer = pygments.lexers.get_lexer_for_filename(
            name, text, stripnl=False, ensurenl=False)
    except util.ClassNotFound:
        lexer = pygments.lexers.get_lexer_by_name('bash', stripnl=False)
    tests = _TESTS.search(text)
    end_of_messages = len(text) if tests is None else tests.start()
    if 'test' in name:
        end_of_messages = 0
    for block in _blocks(lexer, text):
        if block.is_comment:
            yield from _markdown(_uncommented(block.text), block.line)
        elif block.at < end_of_messages and _is_prose(block.text):
            yield Paragraph(block.line, block.text)


@dataclasses.dataclass
class _Block:
    """Comments or strings that follow each other without code between."""

    is_comment: bool
    at: int
    line: int
    text: str


def _blocks(lexer, text):
    block, line = None, 1
    for at, kind, value in lexer.get_tokens_unprocessed(text):
        is_comment = _is_comment(kind)
        is_string = kind in token.String and not is_comment
        if is_comment or is_string:
            if block and block.is_comment == is_comment:
                block.text += value
            else:
                if block:
                    yield block
                block = _Block(is_comment, at, line, value)
        elif block and value.isspace() and '\n\n' not in value:
            block.text += value if block.is_comment else ''
        elif block:
            yield block
            block = None
        line += value.count('\n')
    if block:
        yield block


def _is_comment(kind):
    return kind in token.String.Doc or (
        kind in token.Comment and kind not in token.Comment.Preproc
        and kind not in token.Comment.PreprocFile
        and kind not in token.Comment.Hashbang)


def _uncommented(text):
    """Return a comment's text as a page, with its lines where they were."""
    text = text.replace('"""', '').replace('*/', '')
    lines = [_COMMENT.sub('', line) for line in text.split('\n')]
    if lines and not lines[0].startswith(' '):
        lines = [lines[0], *textwrap.dedent('\n'.join(lines[1:])).split('\n')]
    return '\n'.join(_apart(lines))


def _apart(lines):
    """Keep fields of docstrings apart without a line more.

    A heading mark before each does it: it ends the paragraph before.
    """
    for line in lines:
        yield f'# {line.strip()}' if line.lstrip().startswith(':') else line


def _is_prose(text):
    words = text.strip('"\'rbf#').split()
    plain = sum(1 for word in words if _PLAIN_WORD.fullmatch(word))
    return len(words) > 3 and plain >= _PROSE_SHARE * len(words)
