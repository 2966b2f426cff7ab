#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Builds the CSAR of a template.

The same template, VNFD id and click-check give the same bytes, whenever and
wherever it is built. A package needs an id of its own in Tacker; --fresh-id
makes one. With the program click-check the package names the groups of
elements that each configuration needs in its guest's image.
"""

import argparse
import hashlib
import pathlib
import re
import shutil
import subprocess
import sys
import uuid
import zipfile

HERE = pathlib.Path(__file__).resolve().parent
TYPES = HERE / 'clickos_types' / 'clickos_types.yaml'
#: A copy of tacker_clickos/mgmt_driver.py, which never changes.
SHIM = HERE / 'clickos_types' / 'mgmt_driver.py'
#: Compound elements that configurations share.
LIBRARY = HERE / 'library'
_REQUIRE = re.compile(r'(?m)^require\(library ([a-z0-9-]+\.click)\);\n')
_LICENSE = re.compile(r'// SPDX-License-Identifier: .*\n')
_IMAGE = re.compile(r'(?m)^(\s*sw_image_data:\n\s*name: )(\S+)$')
_POLICY = re.compile(r'(?m)^( *)artifact: (\w+)$')
_ID = re.compile(r'(?m)^(\s*descriptor_id: )(\S+)$')


def collect(template, vnfd_id=None, image=None, checker=None):
    """Return {name in the CSAR: bytes}.

    :param template: folder with Definitions/ and Files/
    :param vnfd_id: takes the place of the template's descriptor_id
    :param image: takes the place of the names of its images in Glance
    :param checker: the program click-check, if the package is to name groups
    """
    files = {}
    for path in sorted(template.rglob('*')):
        folder = path.relative_to(template).parts[0]
        if path.is_file() and folder in ('Definitions', 'Files'):
            files[path.relative_to(template).as_posix()] = (
                configuration(path).encode() if path.suffix == '.click'
                else path.read_bytes())
    files['Definitions/' + TYPES.name] = TYPES.read_bytes()
    files['Scripts/' + SHIM.name] = SHIM.read_bytes()
    entry = 'Definitions/%s.yaml' % template.name
    if entry not in files:
        raise SystemExit('%s: %s is missing' % (template, entry))
    if vnfd_id:
        files[entry] = _with_id(entry, files[entry], vnfd_id)
    if image:
        files[entry] = _with_image(entry, files[entry], image)
    if checker:
        files[entry] = _with_groups(entry, files, checker)
    files['TOSCA-Metadata/TOSCA.meta'] = _meta(entry, files)
    return files


def configuration(path):
    """Return a Click configuration with its libraries in their places.

    A package holds all that its guests need.
    """
    def library(match):
        found = LIBRARY / match[1]
        if not found.is_file():
            raise SystemExit('%s: %s: no such library, expected one of %s' % (
                path, match[1],
                ', '.join(sorted(f.name for f in LIBRARY.iterdir()))))
        return _LICENSE.sub('', found.read_text(), count=1)
    return _REQUIRE.sub(library, path.read_text())


def _with_id(entry, content, vnfd_id):
    text, count = _ID.subn(r'\g<1>' + str(uuid.UUID(vnfd_id)),
                           content.decode())
    if count != 1:
        raise SystemExit('%s: expected one descriptor_id, found %d'
                         % (entry, count))
    return text.encode()


def _with_image(entry, content, image):
    text, count = _IMAGE.subn(r'\g<1>' + image, content.decode())
    if count == 0:
        raise SystemExit('%s: no sw_image_data with a name' % entry)
    return text.encode()


def _with_groups(entry, files, checker):
    """Name in each policy the groups that its configuration needs."""
    text = files[entry].decode()

    def named(policy):
        artifact = re.search(
            r'(?m)^ *%s:\n *type: clickos\.artifacts\.Configuration\n'
            r' *file: \.\./(\S+)$' % policy[2], text)
        if not artifact or artifact[1] not in files:
            return policy[0]
        return '%s\n%sgroups: {%s}' % (policy[0], policy[1], ', '.join(
            _groups(checker, artifact[1], files[artifact[1]])))
    return _POLICY.sub(named, text).encode()


def _groups(checker, name, configuration):
    """Return the groups of elements of a configuration, "GROUP: 'CLASS'"."""
    done = subprocess.run(
        [checker, '--groups', '--guest', '--no-warnings', '--file', '-'],
        input=configuration, capture_output=True, check=False)
    if done.returncode:
        raise SystemExit(done.stderr.decode().replace(
            '<stdin>', name).strip())
    return ["%s: '%s'" % tuple(line.split(' ', 1))
            for line in done.stdout.decode().splitlines()]


def _meta(entry, files):
    """Return TOSCA.meta; its hashes let Tacker refuse a damaged package."""
    blocks = ['TOSCA-Meta-File-Version: 1.0\nCSAR-Version: 1.1\n'
              'Created-By: ClickOS\nEntry-Definitions: %s\n' % entry]
    for name in sorted(files):
        if not name.startswith('Definitions/'):
            blocks.append('Name: %s\nContent-Type: text/plain\n'
                          'Algorithm: SHA-256\nHash: %s\n'
                          % (name, hashlib.sha256(files[name]).hexdigest()))
    return '\n'.join(blocks).encode()


def write(path, files):
    """Write the CSAR with a fixed order, fixed dates and plain modes."""
    with zipfile.ZipFile(path, 'w') as csar:
        for name in sorted(files, key=lambda n: (n != _FIRST, n)):
            info = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))
            info.compress_type = zipfile.ZIP_DEFLATED
            info.create_system = 3
            info.external_attr = 0o100644 << 16
            csar.writestr(info, files[name])


_FIRST = 'TOSCA-Metadata/TOSCA.meta'


def _image_name(text):
    if not re.fullmatch(r'[A-Za-z0-9][A-Za-z0-9._-]{0,63}', text):
        raise argparse.ArgumentTypeError(
            '%r: expected 1 to 64 letters, digits, ".", "_" or "-"' % text)
    return text


def _vnfd_id(text):
    try:
        return str(uuid.UUID(text))
    except ValueError:
        raise argparse.ArgumentTypeError('%r: expected a UUID' % text)


def _template(name):
    """Return the folder of a template, of the path or of this folder."""
    for folder in (pathlib.Path(name), HERE / name):
        if folder.is_dir():
            return folder.resolve()
    raise argparse.ArgumentTypeError(
        '%r: no such folder, and no template of %s: %s' % (
            name, HERE.name, ', '.join(sorted(
                found.parent.name for found in HERE.glob('*/Definitions')))))


def _checker():
    """Return the program click-check of the path, unless it is too old."""
    program = shutil.which('click-check')
    if not program:
        return None
    done = subprocess.run([program, '--help'], capture_output=True, text=True,
                          check=False)
    return program if '--groups' in done.stdout else None


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.split('\n')[0])
    parser.add_argument('template', type=_template,
                        help='a folder of vnfd-templates, such as firewall')
    parser.add_argument('output', type=pathlib.Path, help='the CSAR file')
    ids = parser.add_mutually_exclusive_group()
    ids.add_argument('--vnfd-id', type=_vnfd_id,
                     help='a UUID for the VNFD')
    ids.add_argument('--fresh-id', action='store_true',
                     help='make a new UUID for the VNFD')
    parser.add_argument('--image', type=_image_name,
                        help='name in Glance of the guests\' image')
    parser.add_argument('--click-check', metavar='PROGRAM',
                        help='names the groups of elements (the default is '
                        'that of the path, if it is there and knows groups)')
    options = parser.parse_args(arguments)
    vnfd_id = str(uuid.uuid4()) if options.fresh_id else options.vnfd_id
    try:
        write(options.output, collect(
            options.template, vnfd_id, options.image,
            options.click_check or _checker()))
    except OSError as e:
        raise SystemExit('%s: %s' % (e.filename or options.output, e.strerror))
    return 0


if __name__ == '__main__':
    sys.exit(main())
