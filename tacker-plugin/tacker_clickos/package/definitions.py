# SPDX-License-Identifier: Apache-2.0
"""The TOSCA files of a package: no URL, no foreign file, no foreign code."""

import posixpath
import re

from tacker_clickos.package import archive
from tacker_clickos.package import text
from tacker_clickos import urls
from tacker_clickos.vnfd import interfaces

MAX_IMPORTS = 64
_FILE = re.compile(r'(?:Definitions/)?'
                   r'[A-Za-z0-9][A-Za-z0-9_.-]{0,127}\.ya?ml\Z')
#: Values under these keys are paths that Tacker or its parser opens.
_PATHS = frozenset(('artifacts', 'file', 'implementation', 'primary',
                    'dependencies'))
_REPOSITORIES = ((None,), 'repositories')
_NO_OPERATIONS = (None, 'type', 'derived_from', 'version')


def check(files, may_run=False):
    """Refuse a package whose definitions reach beyond it.

    All YAML files are read, whichever of them the entry imports.

    :param files: what archive.read returned
    :param may_run: whether operations may be implemented by other drivers
    :raises: PackageRefused
    """
    imports = {}
    for name in files:
        if name.lower().endswith(('.yaml', '.yml')):
            document = text.load(name, files[name])
            for keys, value in text.walk(document):
                if isinstance(value, str):
                    _check_text(name, keys, value, may_run)
            imports[name] = _imports(name, document, files)
    _check_graph(imports)


def _check_text(name, keys, value, may_run):
    place = '%s: %s' % (name, '.'.join(
        str(key) for key in keys if key is not None)[-urls.MAX_SHOWN:])
    shown = repr(value[:urls.MAX_SHOWN])
    if keys[-1:] == ('description',) and _PATHS.isdisjoint(keys[-2:-1]):
        return      # not an artifact of this name
    if urls.looks_like_one(value) or (keys[-1:], value) == _REPOSITORIES:
        raise archive.refused(place, '%s: Tacker fetches nothing for a '
                              'package; put the file into it' % shown)
    if not _PATHS.isdisjoint(keys) and not _stays_inside(name, value):
        raise archive.refused(place, '%s leaves the package' % shown)
    if not may_run and _is_operation(keys) and value != interfaces.DRIVER:
        raise archive.refused(place, '%s: operations are implemented by %s '
                              'only' % (shown, interfaces.DRIVER))


def _stays_inside(name, path):
    """Return whether a path, relative to its file, names a file inside.

    Tacker takes what follows the last "../": "/etc" of "..//etc".
    """
    if path.startswith('/') or '//' in path or '\\' in path or '\0' in path:
        return False
    steps = path.split('/')
    while steps[:1] in (['.'], ['..']):
        steps.pop(0)      # at most to the root, as checked below
    joined = posixpath.normpath(
        posixpath.join(posixpath.dirname(name), path))
    return '..' not in steps and not joined.startswith('..')


def _is_operation(keys):
    """Return whether a value says what runs when an operation is called."""
    if 'implementation' in keys:
        return True
    return ('interfaces' in keys and keys[-1] not in _NO_OPERATIONS
            and (keys[-3:-2] == ('interfaces',)
                 or keys[-2:-1] == ('operations',)))


def _imports(name, document, files):
    """Return the files a file imports, all of them next to it.

    toscaparser looks for a path in its working folder first. So the folder
    is the file's own or, for a descriptor at the root (SOL004 option 2),
    Definitions.
    """
    entries = document.get('imports') if isinstance(document, dict) else None
    if not isinstance(entries or [], list) or len(entries or []) > MAX_IMPORTS:
        raise archive.refused(name, 'imports: expected a list of at most %d '
                              'file names' % MAX_IMPORTS)
    return [_import(name, entry, files) for entry in entries or []]


def _import(name, entry, files):
    shown = str(entry)[:urls.MAX_SHOWN]
    while isinstance(entry, dict) and len(entry) == 1:
        (entry,) = entry.values()
    if not isinstance(entry, str) or not _FILE.match(entry):
        raise archive.refused(name, 'imports: %r is not the name of a YAML '
                              'file in the same folder or in Definitions/'
                              % shown)
    target = posixpath.join(posixpath.dirname(name), entry)
    if target not in files:
        raise archive.refused(name, 'imports: %s is missing in the package'
                              % target)
    return target


def _check_graph(imports):
    """Refuse imports in a circle, and few that unfold to many."""
    for name in imports:
        waiting, count = [name], 0
        while waiting:
            count += 1
            if count > MAX_IMPORTS:
                raise archive.refused(name, 'its imports unfold to more than '
                                      '%d files' % MAX_IMPORTS)
            waiting.extend(imports[waiting.pop()])
