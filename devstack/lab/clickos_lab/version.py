# SPDX-License-Identifier: Apache-2.0
"""The one version of everything: of the workspace in Cargo.toml.

Other files state it only where a tool requires it there; :func:`problems`
finds those that differ.
"""

import configparser
import os
import re
import tomllib

from clickos_lab import errors
from clickos_lab import paths

SOURCE = 'Cargo.toml'
#: It lists our crates, which take the version of the workspace.
_LOCK = 'Cargo.lock'
CHANGELOG = 'CHANGELOG.md'
_NUMBER = re.compile(r'\d+\.\d+\.\d+')
_HEADING = re.compile(r'^## (?:Unreleased|(\S+) \((\d{4}-\d\d-\d\d)\))$')
#: A version for pbr that is written down instead of read from Cargo.toml.
_LITERAL = re.compile(r'PBR_VERSION\W+(\d\S*)')


def number(folder=None):
    """Return the version, such as ``0.2.0``.

    :param folder: of the sources, by default this repository
    :raises LabError: if Cargo.toml has no version of three numbers
    """
    path = (folder or paths.REPO) / SOURCE
    found = tomllib.loads(path.read_text())['workspace']['package']['version']
    if not _NUMBER.fullmatch(found):
        raise errors.LabError(
            f'{SOURCE}: workspace.package.version: expected three numbers, '
            f'got {found}')
    return found


def environment():
    """Return this process's environment with the version, for pbr.

    pbr otherwise asks git for a tag, and copied sources have no git.
    """
    return {**os.environ, 'PBR_VERSION': number()}


def heading(folder=None):
    """Return version and date of the newest section of the changelog.

    :returns: both None if the section is called "Unreleased"
    :raises LabError: if the section is called otherwise
    """
    text = ((folder or paths.REPO) / CHANGELOG).read_text()
    lines = [line for line in text.splitlines() if line.startswith('## ')]
    found = _HEADING.match(lines[0] if lines else '')
    if not found:
        raise errors.LabError(
            f'{CHANGELOG}: first section: expected "## VERSION (YYYY-MM-DD)" '
            f'or "## Unreleased", got "{lines[0] if lines else ""}"')
    return found.groups()


def problems(names, folder=None):
    """Return a line for each place whose version is not that of Cargo.toml.

    :param names: files that are searched for a literal version for pbr
    """
    folder = folder or paths.REPO
    wanted = number(folder)
    stated = [*_stated(folder), *_literals(names, folder)]
    wrong = [f'{place}: version {found}; {SOURCE} has {wanted}'
             for place, found in stated if found != wanted]
    if heading(folder)[0] is None and wanted in _released(folder):
        wrong.append(f'{SOURCE}: version {wanted} has a dated section in '
                     f'{CHANGELOG}; what comes after it needs a higher one')
    return wrong


def _released(folder):
    """Return the versions with a section in the changelog."""
    lines = (folder / CHANGELOG).read_text().splitlines()
    found = [_HEADING.match(line) for line in lines]
    return [each[1] for each in found if each and each[1]]


def _stated(folder):
    """Yield each place that has to state the version, and its version."""
    setup = configparser.ConfigParser(interpolation=None)
    setup.read(folder / 'setup.cfg')
    yield 'setup.cfg', setup.get('metadata', 'version', fallback='missing')
    for package in tomllib.loads((folder / _LOCK).read_text())['package']:
        if 'source' not in package:
            yield f'{_LOCK}: {package["name"]}', package['version']
    released, _date = heading(folder)
    if released:
        yield CHANGELOG, released


def _literals(names, folder):
    """Yield each line that gives pbr a version of its own."""
    for name in names:
        text = (folder / name).read_text(errors='replace')
        for line, content in enumerate(text.splitlines(), 1):
            if found := _LITERAL.search(content):
                yield f'{name}:{line}', found[1].rstrip('\'",}')
