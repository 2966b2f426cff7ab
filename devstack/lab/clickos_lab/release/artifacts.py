# SPDX-License-Identifier: Apache-2.0
"""Builds the files of a release from this tree, each of them twice.

Programs are compiled once. Everything is packed twice, and has to be the
same: SOURCE_DATE_EPOCH has the time of the commit.
"""

import gzip
import hashlib
import os
import pathlib
import shutil
import tarfile
import tempfile

from clickos_lab.checks import site
from clickos_lab import debs
from clickos_lab import distribution
from clickos_lab import errors
from clickos_lab import log
from clickos_lab import prepare
from clickos_lab.release import tree
from clickos_lab import venv
from clickos_lab import version

SUMS = 'SHA256SUMS'


def build(state, folder):
    """Build all files into an empty folder, with their checksums.

    :raises LabError: if the second build differs from the first
    """
    epoch = tree.git('log', '-1', '--format=%ct')
    os.environ['SOURCE_DATE_EPOCH'] = epoch
    prepare.packages(state)
    again = folder.with_name(f'{folder.name}-again')
    with log.step('files of the release, twice'):
        for place in (folder, again):
            shutil.rmtree(place, ignore_errors=True)
            place.mkdir(parents=True)
            _pack(state, place, int(epoch))
    _compare(folder, again)
    shutil.rmtree(again)
    (folder / SUMS).write_text(_sums(folder))


def _pack(state, folder, epoch):
    name = f'{venv.DISTRIBUTION}-{version.number()}'
    distribution.wheel(state, folder)
    _pack_again(distribution.sdist(state, folder), epoch)
    tree.git('archive', '--format=tar.gz', f'--prefix={name}/', '--output',
             folder / f'{name}-source.tar.gz', 'HEAD')
    debs.build(state, folder, version.number())
    shutil.rmtree(state.root / 'site', ignore_errors=True)
    page = site.build(state)
    if page is None:
        raise errors.LabError('the site has faults; make docs shows them')
    _archive(page.parents[1], folder / f'{name}-site.tar.gz', f'{name}-site',
             epoch)


def _pack_again(archive, epoch):
    """Replace an archive of one folder: setuptools packs times of now."""
    with tempfile.TemporaryDirectory() as scratch:
        with tarfile.open(archive) as packed:
            packed.extractall(scratch, filter='data')
        (source,) = pathlib.Path(scratch).iterdir()
        _archive(source, archive, source.name, epoch)


def _archive(source, target, prefix, epoch):
    """Pack a folder so that only names and contents count."""
    def plain(member):
        member.uid = member.gid = 0
        member.uname = member.gname = ''
        member.mtime = epoch
        member.mode = 0o755 if member.isdir() else 0o644
        return member

    with open(target, 'wb') as raw, \
            gzip.GzipFile('', 'wb', fileobj=raw, mtime=epoch) as packed, \
            tarfile.open(fileobj=packed, mode='w') as archive:
        for path in [source, *sorted(source.rglob('*'))]:
            archive.add(path, f'{prefix}/{path.relative_to(source)}',
                        recursive=False, filter=plain)


def _sums(folder):
    """Return a line for each file, as sha256sum prints it."""
    return ''.join(
        f'{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}\n'
        for path in sorted(folder.iterdir()))


def _compare(one, other):
    differing = set(_sums(one).splitlines()) ^ set(_sums(other).splitlines())
    if differing:
        names = sorted({line.split()[1] for line in differing})
        raise errors.LabError(
            f'not the same when built again: {", ".join(names)}; compare '
            f'{one} and {other}')
