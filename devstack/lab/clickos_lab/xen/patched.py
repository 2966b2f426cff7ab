# SPDX-License-Identifier: Apache-2.0
"""Xen's tools, built from Debian's source package and our patches.

They lie as on an operator's host: programs and scripts instead of
Debian's, and libraries in a folder of their own, since other programs need
those of Debian.
"""

import os
import shutil

from clickos_lab import apt
from clickos_lab import debian
from clickos_lab import errors
from clickos_lab import log
from clickos_lab import paths
from clickos_lab import shell
from clickos_lab import stamps
from clickos_lab.xen import archive
from clickos_lab.xen import libraries
from clickos_lab.xen import netback

#: The version of Xen that the patches are for.
_XEN = '4.17'
SERIES = paths.REPO / f'xen-patches/xen-{_XEN}'
#: Where a host has the libraries, and the list of patches.
FOLDER = '/usr/lib/clickos/xen'
PROGRAMS_FOLDER = '/usr/lib/xen-4.17/bin'
SCRIPTS_FOLDER = '/etc/xen/scripts'
PATCHES = f'{FOLDER}/patches'
#: The root of dom0, for :class:`qemu.Machine`.
ROOT = 'patched.cpio'

_FETCH_PACKAGES = ('dpkg-dev', 'patch')
_BUILD_PACKAGES = (
    'acpica-tools', 'autoconf', 'autotools-dev', 'bison', 'flex', 'gcc',
    'libc6-dev', 'libglib2.0-dev', 'liblzma-dev', 'libncurses-dev',
    'libpixman-1-dev', 'libyajl-dev', 'make', 'ocaml-findlib', 'ocaml-nox',
    'pkg-config', 'python3-dev',
    'python3-setuptools', 'uuid-dev', 'zlib1g-dev')
_LIBRARIES = {
    'libxenlight.so.4.17': 'tools/libs/light/libxenlight.so.4.17',
    'libxlutil.so.4.17': 'tools/libs/util/libxlutil.so.4.17'}
_SCRIPT = 'tools/hotplug/Linux/vale-port'
#: Program: where the build makes it.
_PROGRAMS = {'xl': 'tools/xl/xl',
             'oxenstored': 'tools/ocaml/xenstored/oxenstored',
             'xenconsoled': 'tools/console/daemon/xenconsoled'}
_DAEMONS = ('oxenstored', 'xenconsoled')
#: Folder of tools, target. Debian builds more of them.
_TARGETS = (('include', 'all'), ('libs', 'all'), ('libs/light', 'testidl'),
            ('xl', 'all'), ('console', 'all'),
            ('ocaml', 'build-tools-oxenstored'))
_CONFIGURE = (
    './configure', '--disable-stubdom', '--disable-docs',
    '--disable-pvshim', '--disable-rombios', '--disable-qemu-traditional',
    '--prefix=/usr', '--sysconfdir=/etc',
    '--localstatedir=/var', '--libdir=/usr/lib/x86_64-linux-gnu',
    '--with-libexec-libdir-suffix=/x86_64-linux-gnu',
    '--with-libexec-leaf-dir=xen-4.17',
    '--with-system-qemu=/usr/libexec/xen-qemu-system-i386',
    '--with-system-seabios=/usr/share/seabios/bios-256k.bin')
#: So that our libraries are found, and those of Debian by other programs.
_LINKED = f'-Wl,-rpath,{FOLDER}'


class SourcesMissing(errors.LabError):
    """The machine's package sources do not have what is built."""


def names(series=SERIES):
    """Return the names of a series' patches in their order."""
    lines = (series / 'series').read_text().splitlines()
    return [line for line in lines if not line.startswith('#')]


def folder(places):
    """Return the root of a host, as far as the patches concern it."""
    return places.root / 'patched/root'


def sdk(places):
    """Return where programs that use the patched libxl find it."""
    return places.root / 'patched/sdk'


def install(state, places):
    """Install what the builds need.

    :raises SourcesMissing: if Debian's packages are not to be had
    """
    if debian.here().xen != _XEN:
        raise SourcesMissing(
            f'the patches are for Xen {_XEN}, which Debian 12 has')
    try:
        apt.ensure(state, {*_FETCH_PACKAGES, *_BUILD_PACKAGES,
                           *netback.packages(places)})
    except errors.LabError as e:
        raise SourcesMissing(str(e))


def prepare(state, places):
    """Build all of it, unless the patches are the same.

    :raises SourcesMissing: if Debian's sources are not to be had
    """
    install(state, places)
    build(state, places)
    netback.build(state, places)


def is_built(places):
    """Return whether the tools were built of the patches as they are."""
    return stamps.fresh(_stamp(places), _wanted())


def source(state, places, name='source'):
    """Fetch Debian's source package afresh, apply the patches.

    :param name: of the folder that is made again for it
    :returns: the folder of the tree
    :raises SourcesMissing: if it is not to be had
    :raises LabError: if a patch does not apply without fuzz
    """
    apt.ensure(state, _FETCH_PACKAGES)
    log_file = state.log / 'xen-patches.log'
    into = places.root / name
    shutil.rmtree(into, ignore_errors=True)
    try:
        _fetch(into, log_file)
    except errors.LabError as e:
        raise SourcesMissing(str(e))
    tree = into / 'xen'
    for patch in names():
        shell.run(['patch', '-p1', '--fuzz=0', '--batch', '-i',
                   SERIES / patch], log_file, cwd=tree)
    return tree


def _fetch(folder, log_file):
    """Fetch and unpack the source with package lists of its own.

    The machine's lists may lack the source packages. Debian's release keeps
    its sources; those of updates vanish when the next update comes.
    """
    (folder / 'lists/partial').mkdir(parents=True)
    (folder / 'cache').mkdir()
    listed = folder / 'sources.list'
    lines = shell.output(
        ['apt-get', 'indextargets', '--format',
         'deb-src $(REPO_URI) $(RELEASE) $(COMPONENT)',
         'Created-By: Packages', 'Origin: Debian']).splitlines()
    listed.write_text(''.join(
        f'{line}\n' for line in lines if '-' not in line.split()[2]))
    options = [f'Dir::Etc::sourcelist={listed}',
               'Dir::Etc::sourceparts=/dev/null',
               f'Dir::State::lists={folder}/lists',
               f'Dir::Cache={folder}/cache', 'APT::Sandbox::User=root']
    command = ['apt-get', '-q', *(w for o in options for w in ('-o', o))]
    shell.run([*command, 'update'], log_file)
    shell.run([*command, 'source', '--download-only', 'xen'], log_file,
              cwd=folder)
    description, = folder.glob('xen_*.dsc')
    shell.run(['dpkg-source', '--no-check', '-x', description, 'xen'],
              log_file, cwd=folder)


def build(state, places):
    """Build xl, its libraries and the daemons, unless they are there."""
    if is_built(places):
        return
    with log.step("Xen's tools with our patches"):
        apt.ensure(state, _BUILD_PACKAGES)
        tree = source(state, places)
        log_file = state.log / 'xen-patches.log'
        for name in ('config.guess', 'config.sub'):
            shutil.copy(f'/usr/share/misc/{name}', tree)
        shell.run(['./autogen.sh'], log_file, cwd=tree)
        shell.run(_CONFIGURE, log_file, cwd=tree)
        env = {**os.environ, 'APPEND_LDFLAGS': _LINKED}
        for part, target in _TARGETS:
            shell.run(['make', '-j2', '-C', f'tools/{part}', target,
                       'XEN_TARGET_ARCH=x86_64', 'WGET=false', 'GIT=false'],
                      log_file, env=env, cwd=tree, timeout_s=1800)
        shutil.rmtree(folder(places).parent, ignore_errors=True)
        _lay_root(tree, folder(places), log_file)
        _lay_sdk(places, tree, sdk(places))
    _stamp(places).write_text(_wanted())


def _stamp(places):
    return places.root / 'source/built.stamp'


def _wanted():
    return stamps.digest([*SERIES.iterdir()], *_CONFIGURE, str(_TARGETS),
                         _LINKED)


def _lay_root(tree, root, log_file):
    """Lay the files as they are on a host."""
    made = {**{f'{FOLDER}/{name}': path for name, path in _LIBRARIES.items()},
            **{f'{PROGRAMS_FOLDER}/{name}': path
               for name, path in _PROGRAMS.items()}}
    for place, path in made.items():
        if not (tree / path).exists():
            raise errors.LabError(f'{tree / path}: the build did not make it')
        _copy(tree / path, root, place)
        shell.run(['strip', root / place.lstrip('/')], log_file)
    _copy(tree / _SCRIPT, root, f'{SCRIPTS_FOLDER}/vale-port')
    _copy(netback.SCRIPT, root, f'{SCRIPTS_FOLDER}/vif-vale')
    listed = ''.join(f'{name.removesuffix(".patch")}\n'
                     for name in (*names(), *netback.names()))
    (root / PATCHES.lstrip('/')).write_text(listed)


def _copy(source_, root, place):
    target = root / place.lstrip('/')
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy(source_, target)


def _lay_sdk(places, tree, into):
    """Lay Debian's headers and libraries, with ours in their place."""
    include = into / 'usr/include'
    shutil.copytree(places.packages / 'usr/include', include, symlinks=True)
    for header in (tree / 'tools/include').glob('*.h'):
        if (include / header.name).exists():
            shutil.copy(header, include)
    inner = f'usr/lib/{libraries.TRIPLE}'
    (into / inner).mkdir(parents=True)
    for library in (places.packages / inner).glob('libxen*.so*'):
        shutil.copy(library, into / inner, follow_symlinks=False)
    for name in _LIBRARIES:
        ours = folder(places) / FOLDER.lstrip('/') / name
        for library in (into / inner).glob(f'{name.partition(".")[0]}.so*'):
            library.unlink()
            shutil.copy(ours, library)


def daemon(places, name):
    """Return where a daemon is after :func:`build`."""
    return folder(places) / PROGRAMS_FOLDER.lstrip('/') / name


def add_daemons(places, contents):
    """Add the daemons to what is in dom0; nothing starts them."""
    for name in _DAEMONS:
        contents.add(daemon(places, name), f'{FOLDER}/{name}', 0o755)


def overlay(places, names=_DAEMONS):
    """Write a root of dom0 with patched daemons in place of Debian's.

    :param names: of the daemons
    :returns: the root's name, for :class:`qemu.Machine`
    """
    root = archive.Archive()
    for name in names:
        root.add_file(f'{PROGRAMS_FOLDER}/{name}'.lstrip('/'),
                      daemon(places, name))
    return _write(places, root, f'{"-".join(names)}.cpio')


def root(places):
    """Write a root of dom0 with all that the patches concern."""
    laid = archive.Archive()
    laid.add_tree('', folder(places))
    laid.add_file(netback.place(places), netback.module(places))
    _write(places, laid, ROOT)


def _write(places, laid, name):
    written = places.build / name
    laid.write(written)
    # The kernel unpacks one archive after the other.
    written.write_bytes(places.initrd.read_bytes() + written.read_bytes())
    return written.name
