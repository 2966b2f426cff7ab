# SPDX-License-Identifier: Apache-2.0
"""The functions that SECURITY.md lists, looked up in the code.

They stand in the tables with a column "function" or "functions", as
`package.module.Class.function`, `module::Type::function` of Rust, or a name
after its module. A name with a hyphen is a program, a crate or a verb.
"""

import ast
import pathlib
import re

#: What the tables have to answer, one row at least for each.
QUESTIONS = ('id to object', 'claim to address', 'bytes to memory',
             'text to parser', 'text to page')
#: Where Python's packages lie.
ROOTS = ('tacker-plugin', 'nova-driver', 'interfaces', 'cosmos/python')
_COLUMNS = ('function', 'functions')
_CODE = re.compile(r'`([^`]+)`')
_DEFINED = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


class Code:
    """The tracked files of the repository.

    :param names: of the files, from the root
    :param read: returns the text of one
    """

    def __init__(self, names, read):
        self._names, self._read = set(names), read
        self._rust = [name for name in names if name.endswith('.rs')]
        self._folders = {part for name in names
                         for part in pathlib.PurePath(name).parts}

    def has(self, text, module):
        """Return whether a name exists; return it and its module.

        :param module: the last module that the cell named, or None
        """
        if '::' in text:
            return self._has_rust(text.split('::')), module
        if '-' in text:
            return text in self._folders or self._is_verb(text), module
        found = self._module(text.split('.'))
        if found:
            file, rest = found
            return self._has_python(file, rest), file
        return bool(module) and self._has_python(
            module, text.split('.')), module

    def _is_verb(self, text):
        return any(f'"{text}"' in self._read(file) for file in self._rust)

    def _module(self, parts):
        """Return (file, what follows it) of a dotted name, or None."""
        for length in range(len(parts), 0, -1):
            for root in ROOTS:
                place = f'{root}/{"/".join(parts[:length])}'
                for file in (f'{place}.py', f'{place}/__init__.py'):
                    if file in self._names:
                        return file, parts[length:]
        return None

    def _has_python(self, file, parts):
        body = ast.parse(self._read(file)).body
        for name in parts:
            found = next((node for node in body if isinstance(node, _DEFINED)
                          and node.name == name), None)
            if found is None:
                return False
            body = found.body
        return True

    def _has_rust(self, parts):
        *places, name = parts
        wanted = re.compile(rf'\bfn {re.escape(name)}\b')
        return any(wanted.search(text) and all(
            self._is_place(place, file, text) for place in places)
            for file in self._rust for text in [self._read(file)])

    @staticmethod
    def _is_place(place, file, text):
        if place[0].isupper():
            return re.search(rf'\bimpl\b.*\b{place}\b', text) or re.search(
                rf'\btrait {place}\b', text)
        return place in re.split(r'[/.]', file.replace('-', '_'))


def problems(text, code):
    """Return what is wrong with the tables, and how many functions they have.
    """
    found, count, answered = [], 0, set()
    for question, cell in _cells(text):
        answered.add(question.partition(':')[0])
        spans = _CODE.findall(cell)
        if not spans:
            found.append(f'{question}: names no function')
        module = None
        for span in spans:
            exists, module = code.has(span, module)
            count += 1
            if not exists:
                found.append(f'{question}: there is no {span}')
    found += [f'no function decides: {each}' for each in QUESTIONS
              if each not in answered]
    return found, count


def _cells(text):
    """Give (first cell, cell of the functions) of each row of the tables."""
    place = None
    for line in text.splitlines():
        cells = [cell.strip() for cell in line.strip('|').split('|')]
        if not line.startswith('|'):
            place = None
        elif place is None:
            place = next((i for i, cell in enumerate(cells)
                          if cell in _COLUMNS), -1)
        elif place > 0 and set(line) - set('|-: '):
            yield cells[0], cells[place]
