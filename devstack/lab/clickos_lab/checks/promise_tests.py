# SPDX-License-Identifier: Apache-2.0
"""The tests that docs/promises.md names, and the commands that run them."""

import collections
import functools
import pathlib
import re
import shlex

from clickos_lab import paths
from clickos_lab.suites import soak

#: Of a Rust file: a function behind #[test], or of a block of proptest.
_RUST_TEST = re.compile(
    r'#\[test\]\s*(?:#\[[^\]]*\]\s*)*(?://[^\n]*\s*)*fn (\w+)')
_PYTHON_TEST = re.compile(r'^ *(?:def (test_\w+)|class (\w+Test))\b',
                          re.MULTILINE)
#: A module that a file names: of Python, or of Rust.
_NEXT = re.compile(r'^(?:from [\w.]+ import|import|mod) (\w+)', re.MULTILINE)
_LAB = 'devstack/lab/'
_TEMPEST = 'tempest-tests/'
#: Parts of soak that are no module: the folder or file of their tests.
_PARTS = {
    'attack': f'{_LAB}clickos_lab/suites/attack.py',
    'packages': f'{_LAB}tests/packages/', 'rings': 'vale/valed/tests/',
    'xen': f'{_LAB}tests/xen/', 'compute': _TEMPEST, 'faults': _TEMPEST,
    'tempest': _TEMPEST, 'xen-hosts': _TEMPEST,
    'upgrade': f'{_LAB}clickos_lab/suites/upgrade.py'}
_IMAGE = 'clickos-image/image/image.py'


class Tests:
    """The tests of the repository.

    :param names: of all files, from the root
    """

    def __init__(self, names):
        self._files = collections.defaultdict(list)
        self._crates = {}
        for name in names:
            self._add(name)

    def _add(self, name):
        self._files[name] = [name]
        if name.endswith('Cargo.toml'):
            found = re.search(r'^name = "([\w-]+)"', _text(name), re.M)
            if found:
                self._crates[found[1]] = f'{pathlib.PurePath(name).parent}/'
        elif name.endswith('.rs'):
            for test in _RUST_TEST.findall(_text(name)):
                self._files[test].append(name)
        elif name.endswith('.py') and 'test' in name:
            for test in _PYTHON_TEST.findall(_text(name)):
                self._files[''.join(test)].append(name)

    def files(self, test):
        """Return the files that define a test."""
        return self._files.get(test, [])

    def reads(self, file, key):
        """Return whether a test's file, or one next to it, has a bound's key.

        The other file is in the same folder, and the test's file imports it.
        """
        place = pathlib.PurePath(file)
        near = [file, *(str(place.with_name(name + place.suffix))
                        for name in _NEXT.findall(_text(file)))]
        return any(f"'{key}'" in _text(name) or f'"{key}"' in _text(name)
                   for name in near if name in self._files)

    def runs(self, command, test, file):
        """Return whether a command runs a test that a file defines."""
        words = shlex.split(command)
        if words[:1] == ['cd'] and words[2] == '&&':
            folder, words = f'{words[1]}/', words[3:]
        else:
            folder = ''
        match words:
            case ['cargo', 'test', *options]:
                return self._cargo_runs(options, test, file)
            case ['make', 'soak', part]:
                return _soak_runs(part.removeprefix('PARTS='), file)
            case ['make', 'image'] | ['clickos-image/image/image.py', *_]:
                return file == _IMAGE
            case ['python', '-m', module, *options]:
                return _python_runs(folder or _LAB, module, options, test,
                                    file)
        return False

    def _cargo_runs(self, options, test, file):
        crate = options[options.index('-p') + 1]
        if not file.startswith(self._crates.get(crate, ' ')):
            return False
        target = options[options.index('--test') + 1] \
            if '--test' in options else None
        filters = [word for word in options
                   if word[:1] != '-' and word not in (crate, target)]
        inside = file.removeprefix(self._crates[crate])
        if target:
            is_there = inside.startswith(
                (f'tests/{target}.rs', f'tests/{target}/'))
        else:
            is_there = inside.startswith('src/') or not (
                {'--lib', '--bins'} & {*options})
        # Without the module of a file's own tests, which has any name.
        modules = inside.removesuffix('.rs').removesuffix('/mod')
        place = f'{modules}::{test}'.replace('/', '::')
        return is_there and all(word in place for word in filters)


def _soak_runs(part, file):
    if part == 'xen-tools':
        modules = soak.ALONE
    elif part in soak.PARTS:
        modules = (soak.PARTS[part],)
    else:
        return part in _PARTS and file.startswith(_PARTS[part])
    return file in map(_file_of, modules)


def _python_runs(folder, module, options, test, file):
    name = options[0] if options else ''
    match module:
        case 'unittest':
            return file == _file_of(name, folder)
        case 'clickos_lab.suites.xen':
            return any(_file_of(part) == file
                       for part in (name, name.rpartition('.')[0]))
        case 'clickos_lab.suites.tempest':
            word = options[1]
            return file.startswith(_TEMPEST) and (
                word in test or word in file or f'class {word}(' in
                _text(file))
        case 'clickos_lab.suites.figures':
            return file == f'{_LAB}tests/figures/{name}.py'
    return file == _file_of(module)


def _file_of(module, folder=_LAB):
    return f'{folder}{module.replace(".", "/")}.py'


@functools.cache
def _text(name):
    return (paths.REPO / name).read_text()
