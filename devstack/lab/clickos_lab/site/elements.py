# SPDX-License-Identifier: Apache-2.0
"""The element reference, from the documentation in each element's file."""

import dataclasses
import re

FOLDERS = tuple(f'clickos-image/crates/{crate}/src/elements'
                for crate in ('click-elements', 'click-elements-os'))
_CLASS = re.compile(r'ELEMENT: Class = Class \{.*?\bname: "([^"]+)"',
                    re.DOTALL)


@dataclasses.dataclass(frozen=True)
class Element:
    """An element class and its documentation in Markdown."""

    name: str
    group: str
    docs: str


def read(file):
    """Read an element from its file.

    :raises ValueError: if the file names no class
    """
    source = file.read_text()
    found = _CLASS.search(source)
    if not found:
        raise ValueError(f'{file}: names no class as ELEMENT')
    lines = [line.removeprefix('//!').removeprefix(' ')
             for line in source.splitlines() if line.startswith('//!')]
    return Element(found[1], file.parent.name, '\n'.join(lines))


def markdown(repository):
    """Return an index of all elements and a section for each."""
    files = [file for folder in FOLDERS
             for file in (repository / folder).glob('*/*.rs')]
    elements = sorted(map(read, files), key=lambda e: e.name.lower())
    groups = sorted({element.group for element in elements})
    index = [_index(group, elements) for group in groups]
    return '\n'.join(['', '| group | elements |', '|---|---|', *index, '',
                      *(_section(element) for element in elements)])


def _index(group, elements):
    links = ', '.join(f'[{e.name}](#{e.name.lower()})'
                      for e in elements if e.group == group)
    return f'| {group} | {links} |'


def _section(element):
    """Return a section; the headings of the documentation become labels."""
    docs = re.sub(r'^# (.*)$', r'\n**\1**\n', element.docs, flags=re.MULTILINE)
    return f'## {element.name}\nGroup `{element.group}`. {docs}\n'
