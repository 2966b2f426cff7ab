# SPDX-License-Identifier: Apache-2.0
"""Xen's tools, built from Debian's source package and our patches."""

import shutil

from clickos_lab import apt
from clickos_lab import errors
from clickos_lab import paths
from clickos_lab import say
from clickos_lab import shell
from clickos_lab import stamps
from clickos_lab.xen import archive

SERIES = paths.REPO / 'xen-patches/xen-4.17'
#: Where dom0 has xl and its libraries.
FOLDER = '/opt/patched'

_FETCH_PACKAGES = ('dpkg-dev', 'patch')
_BUILD_PACKAGES = (
    'acpica-tools', 'autoconf', 'autotools-dev', 'bison', 'flex', 'gcc',
    'libc6-dev', 'libglib2.0-dev', 'liblzma-dev', 'libncurses-dev',
    'libpixman-1-dev', 'libyajl-dev', 'make', 'ocaml-findlib', 'ocaml-nox',
    'pkg-config', 'python3-dev',
    'python3-setuptools', 'uuid-dev', 'zlib1g-dev')
_LIBRARIES = ('light/libxenlight.so.4.17', 'util/libxlutil.so.4.17')
_SCRIPT = 'tools/hotplug/Linux/vale-port'
#: Daemon: where the build makes it. In dom0 it takes the place of Debian's.
_DAEMONS = {'oxenstored': 'tools/ocaml/xenstored/oxenstored',
            'xenconsoled': 'tools/console/daemon/xenconsoled'}
_DAEMONS_FOLDER = 'usr/lib/xen-4.17/bin'
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


def names(series=SERIES):
    """Return the names of a series' patches in their order."""
    lines = (series / 'series').read_text().splitlines()
    return [line for line in lines if not line.startswith('#')]


def source(state, places, name='source'):
    """Fetch Debian's source package afresh, apply the patches.

    :param name: of the folder that is made anew for it
    :returns: the folder of the tree
    :raises LabError: if a patch does not apply without fuzz
    """
    apt.ensure(state, _FETCH_PACKAGES)
    log = state.log / 'xen-patches.log'
    folder = places.root / name
    shutil.rmtree(folder, ignore_errors=True)
    _fetch(folder, log)
    tree = folder / 'xen'
    for name in names():
        shell.run(['patch', '-p1', '--fuzz=0', '--batch', '-i',
                   SERIES / name], log, cwd=tree)
    return tree


def _fetch(folder, log):
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
    shell.run([*command, 'update'], log)
    shell.run([*command, 'source', '--download-only', 'xen'], log, cwd=folder)
    description, = folder.glob('xen_*.dsc')
    shell.run(['dpkg-source', '--no-check', '-x', description, 'xen'], log,
              cwd=folder)


def build(state, places):
    """Build xl and the daemons, unless the patches are the same."""
    stamp = places.root / 'source/built.stamp'
    wanted = stamps.digest([*SERIES.iterdir()], *_CONFIGURE, str(_TARGETS))
    if stamps.fresh(stamp, wanted):
        return
    with say.step("Xen's tools with our patches"):
        apt.ensure(state, _BUILD_PACKAGES)
        tree = source(state, places)
        log = state.log / 'xen-patches.log'
        for name in ('config.guess', 'config.sub'):
            shutil.copy(f'/usr/share/misc/{name}', tree)
        shell.run(['./autogen.sh'], log, cwd=tree)
        shell.run(_CONFIGURE, log, cwd=tree)
        for part, target in _TARGETS:
            shell.run(['make', '-j2', '-C', f'tools/{part}', target,
                       'XEN_TARGET_ARCH=x86_64', 'WGET=false', 'GIT=false'],
                      log, cwd=tree, timeout_s=1800)
    stamp.write_text(wanted)


def add(places, contents):
    """Add xl, its libraries and its script to what is in dom0."""
    tree = places.root / 'source/xen'
    contents.add(tree / 'tools/xl/xl', f'{FOLDER}/xl', 0o755)
    for library in _LIBRARIES:
        path = tree / 'tools/libs' / library
        if not path.exists():
            raise errors.LabError(f'{path}: the build did not make it')
        contents.add(path, f'{FOLDER}/{path.name}')
    contents.add(tree / _SCRIPT, '/etc/xen/scripts/vale-port', 0o755)


def daemon(places, name):
    """Return where a daemon is after :func:`build`."""
    return places.root / 'source/xen' / _DAEMONS[name]


def add_daemons(places, contents):
    """Add the daemons to what is in dom0; nothing starts them."""
    for name in _DAEMONS:
        contents.add(daemon(places, name), f'{FOLDER}/{name}', 0o755)


def overlay(places, names=tuple(_DAEMONS)):
    """Write a root of dom0 with patched daemons in place of Debian's.

    :param names: of the daemons
    :returns: the root's name, for :class:`qemu.Machine`
    """
    root = archive.Archive()
    for name in names:
        root.add_file(f'{_DAEMONS_FOLDER}/{name}', daemon(places, name))
    written = places.build / f'{"-".join(names)}.cpio'
    root.write(written)
    # The kernel unpacks one archive after the other.
    written.write_bytes(places.initrd.read_bytes() + written.read_bytes())
    return written.name
