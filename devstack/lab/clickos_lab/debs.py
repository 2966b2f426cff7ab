# SPDX-License-Identifier: Apache-2.0
"""``make packages``: Debian packages of a compute host.

They are for the Debian that builds them, by its Xen, Python and C library.

The folder ``packaging`` has one folder a package: ``control``, the scripts of
the maintainer, and ``root`` with files that are the same in each version.
"""

import dataclasses
import hashlib
import os
import pathlib
import shutil
import sys
import tempfile

from clickos_lab.config import options
from clickos_lab import debian
from clickos_lab import distribution
from clickos_lab import log
from clickos_lab import openstack
from clickos_lab import paths
from clickos_lab import shell
from clickos_lab import venv
from clickos_lab import version
from clickos_lab.xen import image
from clickos_lab.xen import patched
from clickos_lab.xen import toolstack
from clickos_lab.xen import variants
from clickos_lab.xen import xen_paths

SOURCES = paths.REPO / 'packaging'
NAMES = ('common', 'cosmosd', 'valed', 'guest', 'agent')
#: The package with Xen's tools; its build needs the sources of Debian's Xen.
XEN = 'xen'
_SCRIPTS = ('preinst', 'postinst', 'prerm', 'postrm')
_LIBRARY = '/usr/lib/clickos'
_COSMOSD = '/usr/sbin/cosmosd'
#: Files in which uv notes paths and times of this machine.
_ORIGINS = ('direct_url.json', 'uv_cache.json')
_SHARE = '/usr/share/clickos'
#: The scripts fill in the user ids when they install these files.
_VALUES = {
    'CLICKOS_COSMOSD_SOCKET': '/run/clickos/cosmosd/cosmosd.sock',
    'CLICKOS_VALED_SOCKET': '/run/clickos/valed/valed.sock',
    'CLICKOS_VALED_STORE': 'xenstore = "/run/clickos/store/socket"',
    'CLICKOS_XENSTORE_DIR': '/run/xenstored',
    'CLICKOS_COSMOSD_DIR': '/var/lib/clickos/cosmosd',
    'CLICKOS_VALED_DIR': '/var/lib/clickos/valed',
    'CLICKOS_HOST_KIND': 'xen', 'CLICKOS_CGROUP': 'clickos',
    'CLICKOS_ENGINE': f'{_LIBRARY}/clickos-process',
    'CLICKOS_GUEST_UID': '200000', 'CLICKOS_NOVA_UID': '@NOVA_UID@',
    'CLICKOS_AGENT_UID': '@AGENT_UID@'}


@dataclasses.dataclass(frozen=True)
class Contents:
    """Files of a package besides those in its folder ``root``."""

    #: path in the package: program to copy
    programs: dict
    #: path in the package: its text
    texts: dict = dataclasses.field(default_factory=dict)
    readme: str | None = None
    #: files in whose place those of other packages are
    diverted: tuple = ()


def contents(state):
    """Return what each package holds, by its name."""
    def built(name):
        return state.binary(name)

    return {
        'common': Contents({}),
        'cosmosd': Contents(
            # Both host kinds; this one is linked with Xen's libraries.
            {_COSMOSD: toolstack.built(state, 'cosmosd'),
             '/usr/bin/cosmos': built('cosmos')},
            {f'{_SHARE}/cosmosd.toml':
                options.file('cosmosd.toml', **_VALUES)}, 'cosmos'),
        'valed': Contents(
            {'/usr/sbin/valed': built('valed'),
             '/usr/sbin/vale-store': built('vale-store'),
             '/usr/bin/vale-ctl': built('vale-ctl'),
             '/usr/bin/vale-tc': built('vale-tc'),
             '/usr/bin/pkt-gen': built('pkt-gen')},
            {f'{_SHARE}/valed.toml': options.file('valed.toml', **_VALUES)},
            'vale'),
        'guest': Contents(
            {f'{_LIBRARY}/clickos-process': built('clickos-process'),
             **{f'{_LIBRARY}/{name}': image.folder(state) / name
                for name in image.OF_PROFILES}},
            {f'{_LIBRARY}/{name}.groups': image.groups(state, name) + '\n'
             for name in image.OF_PROFILES}),
        'agent': Contents(
            {}, {f'{_SHARE}/clickos-agent.conf': _agent_conf()},
            'nova-driver'),
        XEN: _xen(state)}


def _xen(state):
    """Return what the package of Xen's tools holds, once they are built."""
    root = patched.folder(xen_paths.XenPaths(state))
    files = [path for path in root.rglob('*') if path.is_file()]
    held = {f'/{path.relative_to(root)}': path for path in files}
    listed = {patched.PATCHES: held.pop(patched.PATCHES).read_text()} \
        if held else {}
    held[_COSMOSD] = toolstack.built(state, 'cosmosd', variants.PATCHED)
    return Contents(held, listed, 'xen-patches', diverted=tuple(
        sorted(path for path in held if '/bin/' in path or path == _COSMOSD)))


def _agent_conf():
    """Return the agent's file; the operator fills in the message queue."""
    lines = ['# SPDX-License-Identifier: Apache-2.0', '[DEFAULT]',
             '# Equal to [DEFAULT] host of nova-compute on this host.',
             '#host = compute1',
             '#transport_url = rabbit://clickos-agent:PASSWORD@CONTROLLER/']
    for section, wanted in options.of('agent', **_VALUES).items():
        lines += ['', f'[{section}]',
                  *(f'{key} = {value}' for key, value in wanted.items())]
    return '\n'.join(lines) + '\n'


def before_release():
    """Return the version of a build that is not a release.

    The number of commits orders such builds; "~" sorts them before the
    release (deb-version(7)).
    """
    git = ['git', '-c', f'safe.directory={paths.REPO}', '-C', paths.REPO]
    count = shell.output([*git, 'rev-list', '--count', 'HEAD']).strip()
    return f'{version.number()}~{count}'


def of_debian():
    """Return the versions in control that are those of this Debian."""
    minor = sys.version_info.minor
    return {'XEN': debian.here().xen, 'PYTHON': f'3.{minor}',
            'NEXT_PYTHON': f'3.{minor + 1}',
            'LIBC': os.confstr('CS_GNU_LIBC_VERSION').split()[1]}


def _suffix():
    """Return what orders the packages of a later Debian behind the others.

    So an upgrade of Debian brings the packages that are built for it.
    """
    number = debian.here().number
    return '' if number == min(debian.RELEASES) else f'+deb{number}'


def build(state, folder, number=None, names=NAMES):
    """Build the packages into a folder.

    :param number: the version, by default :func:`before_release`
    :returns: the paths of the packages
    """
    number = f'{number or before_release()}{_suffix()}'
    every = contents(state)
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as scratch:
        return [_build(state, name, every[name], pathlib.Path(scratch) / name,
                       folder, number) for name in names]


def _build(state, name, held, root, folder, number):
    """Lay a package's files below a root and pack it."""
    root.mkdir()
    if (SOURCES / name / 'root').is_dir():
        shutil.copytree(SOURCES / name / 'root', root, dirs_exist_ok=True)
    for path, source in held.programs.items():
        _place(root, path, source.read_bytes(), 0o755)
        # neither a script nor a guest: its bytes are its identity
        if 'bin/' in path:
            shell.output(['strip', root / path.lstrip('/')])
    for path, text in held.texts.items():
        _place(root, path, text.encode(), 0o644)
    package = f'clickos-{name}'
    document = f'/usr/share/doc/{package}'
    _place(root, f'{document}/copyright', _copyright().encode(), 0o644)
    if held.readme:
        text = (paths.REPO / held.readme / 'README.md').read_bytes()
        _place(root, f'{document}/README.md', text, 0o644)
    if name == 'agent':
        _add_python(state, root)
    _write_control(root, name, {
        'VERSION': number, 'DIVERTED': ' '.join(held.diverted),
        **of_debian()})
    _open(root)
    target = folder / f'{package}_{number}_amd64.deb'
    shell.output(['dpkg-deb', '-Zzstd', '--root-owner-group', '--build',
                  root, target],
                 env={'SOURCE_DATE_EPOCH': '0', **os.environ},
                 timeout_s=300)
    return target


def _open(root):
    """Let everybody read all files, whatever the umask was."""
    for path in [root, *root.rglob('*')]:
        if not path.is_symlink():
            runs = path.is_dir() or path.stat().st_mode & 0o100
            path.chmod(0o755 if runs else 0o644)


def _place(root, path, data, mode):
    target = root / path.lstrip('/')
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_bytes(data)
    target.chmod(mode)


def _copyright():
    return 'License: Apache-2.0\n\n' + (paths.REPO / 'LICENSE').read_text()


def _write_control(root, name, values):
    """Write DEBIAN: control, checksums, and scripts.

    :param values: of @NAME@ in control and scripts
    """
    sums, size = [], 0
    for path in sorted(p for p in root.rglob('*') if p.is_file()):
        data = path.read_bytes()
        size += len(data)
        digest = hashlib.md5(data, usedforsecurity=False).hexdigest()
        sums.append(f'{digest}  {path.relative_to(root)}\n')
    lines = _filled(SOURCES / name / 'control', values).splitlines()
    fields = [line for line in lines if not line.startswith('#')]
    fields[1:1] = [
        f'Version: {values["VERSION"]}', 'Architecture: amd64', 'Section: net',
        'Priority: optional', f'Installed-Size: {size // 1024}',
        'Maintainer: ClickOS for OpenStack <clickos@example.org>']
    _place(root, 'DEBIAN/control', ('\n'.join(fields) + '\n').encode(), 0o644)
    _place(root, 'DEBIAN/md5sums', ''.join(sums).encode(), 0o644)
    for script in _SCRIPTS:
        source = SOURCES / name / script
        if source.exists():
            _place(root, f'DEBIAN/{script}', _filled(source, values).encode(),
                   0o755)


def _filled(path, values):
    text = path.read_text()
    for name, value in values.items():
        text = text.replace(f'@{name}@', value)
    return text


def _add_python(state, root):
    """Add the agent's libraries, and the wheel with all drivers."""
    log_file = state.log / 'packages.log'
    library, wheels = root / _LIBRARY[1:] / 'python', root / _SHARE[1:]
    wheel = distribution.wheel(state, wheels)
    shell.run([venv.uv(state), 'pip', 'install', '--quiet', '--python',
               state.tool('python'), '--target', library, '--constraint',
               openstack.requirements(), wheel], log_file)
    _forget_origin(library)
    # These programs name the interpreter of this machine.
    shutil.rmtree(library / 'bin', ignore_errors=True)
    # dpkg-deb changes the times of files, so that no time can be checked.
    shell.run([state.tool('python'), '-m', 'compileall', '-q', '-s', library,
               '-p', f'{_LIBRARY}/python', '--invalidation-mode',
               'unchecked-hash', library], log_file)
    for path in library.rglob('*'):
        path.chmod(0o755 if path.is_dir() else 0o644)


def _forget_origin(library):
    """Remove records of where and when uv found our wheel, for each build."""
    for record in library.glob('*.dist-info/RECORD'):
        lines = record.read_text().splitlines(keepends=True)
        record.write_text(''.join(
            line for line in lines
            if line.split(',')[0].rpartition('/')[2] not in _ORIGINS))
        for name in _ORIGINS:
            (record.parent / name).unlink(missing_ok=True)


def run(state, _arguments):
    """Build all and tell where they are."""
    from clickos_lab import prepare
    prepare.packages(state)
    names = (*NAMES, XEN) if prepare.xen_package(state) else NAMES
    with log.step('Debian packages'):
        made = build(state, state.root / 'packages', names=names)
    for path in made:
        log.info(f'{path}: {path.stat().st_size // 1024} KiB')
