# SPDX-License-Identifier: Apache-2.0
"""Whether a package is of ClickOS, or for another driver of Tacker."""

import re

from tacker_clickos.package import text

#: A name of a type of ours, as artifacts and policies have it.
_TYPE = re.compile(r'clickos\.\w+\.\w+\Z')


def is_ours(files):
    """Tell whether a package names a type of ClickOS.

    All YAML files are read, whichever of them the entry imports. So a VNFD
    with guests of ClickOS and others is one of ClickOS, which refuses it.

    :param files: what archive.read returned
    :raises: PackageRefused
    """
    return any(_is_type(value) for name, content in files.items()
               if name.lower().endswith(('.yaml', '.yml'))
               for _keys, value in text.walk(text.load(name, content)))


def _is_type(value):
    return isinstance(value, str) and bool(_TYPE.match(value))
