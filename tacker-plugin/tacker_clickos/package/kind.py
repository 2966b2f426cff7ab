# SPDX-License-Identifier: Apache-2.0
"""Whether a package is of ClickOS, or for another driver of Tacker."""

import re

from tacker_clickos.package import text

#: A name of a type of ours, as artifacts and policies have it.
_TYPE = re.compile(r'clickos\.\w+\.\w+\Z')


def is_ours(files):
    """Return whether a package uses a type of ClickOS.

    A definition of such a type is no use of it. All YAML files are read,
    whichever of them the entry imports. So a VNFD with guests of ClickOS and
    others is one of ClickOS, which refuses it.

    :param files: what archive.read returned
    :raises: PackageRefused
    """
    return any(_is_type(keys, value) for name, content in files.items()
               if name.lower().endswith(('.yaml', '.yml'))
               for keys, value in text.walk(text.load(name, content)))


def _is_type(keys, value):
    """Tell it of a value, not of a key, which walk() yields as well."""
    return (isinstance(value, str) and bool(_TYPE.match(value))
            and keys[-1:] != (None,))
