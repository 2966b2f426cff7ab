# SPDX-License-Identifier: Apache-2.0
"""clickos-nova-link: let a Nova from a distribution's packages find us.

Nova loads ``nova.virt.<compute_driver>`` only. pip puts our ``nova/virt/
clickos`` into its own folder, and Python ignores it there if Nova lies in
another one, such as ``/usr/lib/python3/dist-packages``: a package with an
``__init__.py`` is one folder. This program links ours into Nova's.
"""

import argparse
import importlib.machinery
import pathlib
import sys

_OURS = pathlib.Path('nova/virt/clickos')
#: where this module is installed
_PLACE = pathlib.Path(__file__).resolve().parents[1]


class LinkError(Exception):
    """The link cannot be made or removed."""


def nova_folder(path=None):
    """Return the folder that Python takes for the package nova.virt.

    :param path: list of folders as of sys.path, which is the default
    :raises LinkError: if there is no Nova
    """
    found = importlib.machinery.PathFinder.find_spec('nova', path)
    if found is None or not found.has_location:
        raise LinkError('nova: not installed for this Python')
    folder = pathlib.Path(found.origin).parent / 'virt'
    if not (folder / '__init__.py').is_file():
        raise LinkError(f'{folder}: expected the package nova.virt')
    return folder


def own_folder():
    """Return the folder of our package below ``nova/virt``.

    It is the one installed with this module. No other folder counts: Python
    may search the folder that root works in.

    :raises LinkError: if it is not installed
    """
    found = _PLACE / _OURS
    if (found / 'driver.py').is_file() and not found.is_symlink():
        return found.resolve()
    raise LinkError(f'{found}: not found; install the wheel')


def make(path=None):
    """Make the link unless Nova finds us; may be called twice.

    :returns: a line for the operator
    :raises LinkError: if something else has the name
    """
    own, link = own_folder(), nova_folder(path) / 'clickos'
    if link.resolve() == own:
        return f'{link}: Nova finds the driver'
    if link.exists() and not link.is_symlink():
        raise LinkError(f'{link}: exists, and is not a link')
    try:
        link.unlink(missing_ok=True)
        link.symlink_to(own)
    except OSError as e:
        raise LinkError(f'{link}: {e.strerror}')
    return f'{link}: links to {own}'


def remove(path=None):
    """Remove the link; may be called twice.

    :returns: a line for the operator
    :raises LinkError: if the name is no link
    """
    link = nova_folder(path) / 'clickos'
    if link.exists() and not link.is_symlink():
        raise LinkError(f'{link}: exists, and is not a link')
    try:
        link.unlink(missing_ok=True)
    except OSError as e:
        raise LinkError(f'{link}: {e.strerror}')
    return f'{link}: no link'


def main(argv=None):
    """Entry point of the console script.

    :returns: the exit status, 1 after an error
    """
    parser = argparse.ArgumentParser(
        description='Link the compute driver into the package of a Nova that'
        ' lies in another folder than the wheel.')
    parser.add_argument('--remove', action='store_true',
                        help='remove the link')
    arguments = parser.parse_args(argv)
    try:
        print(remove() if arguments.remove else make())
    except LinkError as e:
        print(f'clickos-nova-link: {e}', file=sys.stderr)
        return 1
    return 0
