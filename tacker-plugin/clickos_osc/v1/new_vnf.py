# SPDX-License-Identifier: Apache-2.0
"""openstack clickos vnf new."""

import pathlib
import re
import zipfile

from osc_lib import exceptions

from clickos_osc import command
from clickos_osc import lazy

scaffold = lazy.module('clickos_osc.scaffold')


_NAME = re.compile(r'[a-z][a-z0-9]*(-[a-z0-9]+)*')
_NAME_LENGTH = 32
_IMAGE = re.compile(r'[A-Za-z0-9][A-Za-z0-9._-]{0,63}')


class NewVnf(command.Command):
    """Make the files of a VNF of your own, and its package.

    The folder has a descriptor, a Click configuration, a request that starts
    the VNF, and a README with the next steps. The package next to it passes
    package check and can be uploaded. The command asks no service.

    Example: openstack clickos vnf new my-shaper --dir vnfs
    """

    auth_required = False

    def get_parser(self, prog_name):
        """Add the arguments."""
        parser = super().get_parser(prog_name)
        parser.add_argument('name', metavar='<name>',
                            help='Lower-case letters, digits and hyphens')
        parser.add_argument('--dir', metavar='<folder>', default='.',
                            help='Where to make the folder (default: here)')
        parser.add_argument('--image', metavar='<image>', default='clickos',
                            help='Name in Glance of the guests\' image'
                                 ' (default: clickos)')
        return parser

    def take_action(self, parsed_args):
        """Write the files and say so."""
        name = parsed_args.name
        _check(name, parsed_args.image)
        texts = scaffold.files(name, parsed_args.image)
        folder = pathlib.Path(parsed_args.dir) / name
        package = folder.with_name(name + '.csar')
        try:
            _write(folder, package, texts)
        except OSError as exc:
            raise exceptions.CommandError(f'{exc.filename}: {exc.strerror}')
        self.app.stdout.write(f'{package}: the package\n'
                              f'{folder / "README.md"}: the next steps\n')


def _check(name, image):
    if len(name) > _NAME_LENGTH or not _NAME.fullmatch(name):
        raise exceptions.CommandError(
            f'{name!r}: expected 1 to {_NAME_LENGTH} lower-case letters,'
            ' digits and single hyphens, a letter first')
    if not _IMAGE.fullmatch(image):
        raise exceptions.CommandError(
            f'--image {image!r}: expected 1 to 64 letters, digits, ".", "_"'
            ' or "-"')


def _write(folder, package, texts):
    """Write the folder and the package; neither may exist."""
    folder.mkdir(parents=True)
    for path, text in texts.items():
        target = folder / path
        target.parent.mkdir(exist_ok=True)
        target.write_text(text)
    with zipfile.ZipFile(package, 'x', zipfile.ZIP_DEFLATED) as csar:
        for path in (scaffold.META, *sorted(set(texts) - {scaffold.META})):
            if path.startswith(scaffold.PACKED):
                csar.writestr(path, texts[path])
