# SPDX-License-Identifier: Apache-2.0
"""The modules of a crate import each other in one direction.

A cycle is a set of top-level modules of a crate each of which reaches the
others by ``crate::``. Imports of unit tests do not count: a test may use what
lies above its module. DEBT has the crates that still have cycles, with the
number of modules in them, which may only fall.
"""

import pathlib
import re
import sys

from clickos_lab import checks
from clickos_lab import paths

#: crate: modules in cycles
DEBT = {
    'click-lang': 5, 'click-packet': 7, 'click-run': 3,
    'clickos-control': 4, 'clickos-process': 2, 'clickos-xen-net': 2,
    'clickos-xen-sys': 2}
_ROOTS = ('lib', 'main')
_TESTS = re.compile(r'^#\[cfg\(test\)\]\nmod \w+ \{.*?^\}', re.M | re.S)
_IMPORT = re.compile(r'\bcrate::(?:\{([^}]*)\}|(\w+))')


def imports(files):
    """Map each top-level module to those that it imports.

    :param files: {path below src: text}
    """
    found = {}
    for path, text in files.items():
        module = pathlib.PurePath(path).parts[0].removesuffix('.rs')
        if module not in _ROOTS:
            found.setdefault(module, set()).update(_named(text))
    return {module: {n for n in names if n in found and n != module}
            for module, names in found.items()}


def _named(text):
    for several, one in _IMPORT.findall(_TESTS.sub('', text)):
        for name in several.split(',') if several else [one]:
            yield name.strip().partition('::')[0]


def cycles(graph):
    """Return the modules that reach themselves, sorted."""
    return sorted(m for m in graph if m in _reached(graph, m))


def _reached(graph, start):
    reached, left = set(), list(graph[start])
    while left:
        module = left.pop()
        if module not in reached:
            reached.add(module)
            left += graph[module]
    return reached


def check(crate, files, limit):
    """Return what is wrong with a crate, as a list of one line or none."""
    found = cycles(imports(files))
    print(f'{crate}: {len(found)} of {limit}')
    if len(found) > limit:
        return [f'{crate}: {len(found)} modules import each other in '
                f'cycles, the limit is {limit}: {" ".join(found)}']
    if len(found) < limit:
        return [f'{crate}: {len(found)} modules in cycles: lower its '
                'number in checks/import_cycles.py']
    return []


def main():
    """Check every crate."""
    problems, count = [], 0
    for manifest in sorted(paths.REPO.glob('*/**/Cargo.toml')):
        source = manifest.parent / 'src'
        if 'target' in manifest.parts or not source.is_dir():
            continue
        crate, count = manifest.parent.name, count + 1
        files = {str(path.relative_to(source)): path.read_text()
                 for path in source.rglob('*.rs')}
        problems += check(crate, files, DEBT.get(crate, 0))
    return checks.report(problems, count, 'crates')


if __name__ == '__main__':
    sys.exit(main())
