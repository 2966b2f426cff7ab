# SPDX-License-Identifier: Apache-2.0
"""libcosmos for Python, by SWIG, and an interpreter to try it in dom0.

SWIG is a Debian package that is unpacked, never installed. dom0 gets the
interpreter that runs the lab, with those modules it needs to start.
"""

import io
import os
import pathlib
import sys
import sysconfig
import zipfile

from clickos_lab import paths
from clickos_lab import shell
from clickos_lab.xen import libraries

#: Where dom0 has interpreter and module.
FOLDER = '/opt/python'
_SWIG = ('swig', 'swig4.0')
_SOURCE = paths.REPO / 'cosmos/swig'
_PACKAGES = ('collections', 'encodings', 'importlib', 're')


def build(state, places):
    """Make the module; return the folder it is in."""
    swig, out = places.build / 'swig', places.build / 'bindings'
    log = state.log / 'bindings.log'
    if not swig.exists():
        _unpack(swig, log)
    shell.run([_SOURCE / 'build.sh', out], log, timeout_s=300, env={
        **os.environ, 'PYTHON': sys.executable,
        'XEN_ROOT': str(places.packages),
        'SWIG': str(swig / 'usr/bin/swig4.0'),
        'SWIG_LIB': str(swig / 'usr/share/swig4.0')})
    return out


def _unpack(folder, log):
    debs = folder.with_suffix('.debs')
    debs.mkdir(parents=True, exist_ok=True)
    shell.run(['apt-get', '-q', '-o', 'APT::Sandbox::User=root', 'download',
               *_SWIG], log, cwd=debs)
    for deb in debs.iterdir():
        shell.run(['dpkg-deb', '-x', deb, folder], log)


def add(state, places, contents):
    """Add module, test and interpreter to what is in dom0 from the start."""
    out = build(state, places)
    for path in (out / 'cosmos.py', out / '_cosmos.so',
                 _SOURCE / 'test_cosmos.py'):
        contents.add(path, f'{FOLDER}/module/{path.name}')
    program = pathlib.Path(os.path.realpath(sys._base_executable))
    contents.add(program, f'{FOLDER}/bin/python3', 0o755)
    for library in libraries.closure(places, [program]):
        path = pathlib.Path(library)
        contents.add(path, f'{FOLDER}/bin/{path.name}', 0o755)
    version = f'{sys.version_info.major}{sys.version_info.minor}'
    contents.add_text(_modules(), f'{FOLDER}/lib/python{version}.zip')


def _modules():
    """Return an archive of the interpreter's own modules, not compressed."""
    top = pathlib.Path(sysconfig.get_paths()['stdlib'])
    found = [*top.glob('*.py')]
    for package in _PACKAGES:
        found += (top / package).rglob('*.py')
    text = io.BytesIO()
    with zipfile.ZipFile(text, 'w') as archive:
        for path in sorted(found):
            archive.write(path, path.relative_to(top))
    return text.getvalue()


def command(*arguments):
    """Return the line that runs the test in dom0."""
    return (f'LD_LIBRARY_PATH={FOLDER}/bin PYTHONHOME={FOLDER} '
            f'PYTHONPATH={FOLDER}/module {FOLDER}/bin/python3 -S -B '
            f'{FOLDER}/module/test_cosmos.py {" ".join(arguments)}')
