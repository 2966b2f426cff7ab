# SPDX-License-Identifier: Apache-2.0
"""The hostile texts of interfaces/tests, and archives that cost much."""

import importlib.util
import io
import pathlib
import struct
import zipfile

_FILE = (pathlib.Path(__file__).resolve().parents[3]
         / 'interfaces/tests/hostile_yaml.py')


def _loaded():
    spec = importlib.util.spec_from_file_location('hostile_yaml', _FILE)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


yaml_texts = _loaded()


def _packed(files, method=zipfile.ZIP_DEFLATED):
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, 'w', method) as archive:
        for name, content in files:
            archive.writestr(name, content)
    return packed.getvalue()


def _lying_about_its_size():
    """Return an archive whose file unpacks to more than it says."""
    packed = bytearray(_packed([('Files/x', b'\0' * (1 << 20))]))
    for magic, offset in ((b'PK\3\4', 22), (b'PK\1\2', 24)):
        at = packed.index(magic) + offset
        packed[at:at + 4] = struct.pack('<I', 10)
    return bytes(packed)


def _many_entries():
    """Return an archive of 4 MiB that is almost all directory."""
    entry = struct.pack('<4s6H3I5H2I', b'PK\1\2', 20, 20, 0, 0, 0, 0, 0, 0, 0,
                        1, 0, 0, 0, 0, 0, 0) + b'x'
    count = (4 * 1024 * 1024 - 22) // len(entry)
    return entry * count + struct.pack(
        '<4s4H2IH', b'PK\5\6', 0, 0, count & 0xffff, count & 0xffff,
        len(entry) * count, 0, 0)


def _nested():
    inner = b'x'
    for _level in range(20):
        inner = _packed([('Files/x.zip', inner)])
    return inner


#: {name: bytes}; none of them is a package.
ARCHIVES = {
    'a bomb of one file': _packed([('Files/x', b'\0' * (20 << 20))]),
    'a bomb of many files': _packed(
        [('Files/%d' % number, b'\0' * (1 << 20)) for number in range(20)]),
    'a bomb of YAML': _packed([('x.yaml', b' ' * (20 << 20))]),
    'a bomb of manifests': _packed([('x.mf', b'\n' * (20 << 20))]),
    'a lie about a size': _lying_about_its_size(),
    'many entries': _many_entries(),
    'many empty files': _packed(
        [('Files/%d' % number, b'') for number in range(5000)]),
    'archives in archives': _nested(),
    'overlapping ends': b'PK\5\6' * (1 << 18),
    'no archive': b'x' * (4 << 20),
}
