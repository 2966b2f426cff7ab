# SPDX-License-Identifier: Apache-2.0
"""The description that the lab shares with DevStack's plugin.

The folder ``devstack`` holds it: names and numbers in ``defaults``, options
of services in ``options.conf``, files of our daemons in ``files``.
"""

import re
import string

from clickos_lab import paths

FOLDER = paths.REPO / 'devstack'
_DEFAULT = re.compile(r'([A-Z_]+)=\$\{\1:-(.*)\}')
_GROUP = re.compile(r'\[\[([a-z-]+)\|(\S+)\]\]')
_SECTION = re.compile(r'\[([a-z0-9_-]+|DEFAULT)\]')


def _read_defaults():
    lines = (_folder / 'defaults').read_text().splitlines()
    found = filter(None, map(_DEFAULT.fullmatch, lines))
    return {match[1]: match[2] for match in found}


#: Of the release whose parts are configured.
_folder = FOLDER
#: Name and value of each line of ``defaults``.
DEFAULTS = _read_defaults()


def use(folder):
    """Take the description of another release from now on.

    :param folder: ``devstack`` of its sources
    """
    global _folder
    _folder = folder
    DEFAULTS.clear()
    DEFAULTS.update(_read_defaults())


def source(name):
    """Return the path of a file of the sources of the release in use."""
    return _folder.parent / name


def groups():
    """Return the groups of ``options.conf``.

    :returns: dict of (file, dict of section of options) by group
    """
    found = {}
    for line in (_folder / 'options.conf').read_text().splitlines():
        if group := _GROUP.fullmatch(line):
            found[group[1]] = (group[2], {})
        elif section := _SECTION.fullmatch(line):
            options = next(reversed(found.values()))[1].setdefault(
                section[1], {})
        elif line and not line.startswith('#'):
            key, value = line.split(' = ')
            options[key] = value
    return found


def of(group, **values):
    """Return the options of a group.

    :param values: of the variables that ``defaults`` does not name
    :returns: dict of section of options
    :raises KeyError: naming a variable without a value
    """
    _file, sections = groups()[group]
    return {section: {key: _filled(text, values)
                      for key, text in options.items()}
            for section, options in sections.items()}


def file(name, **values):
    """Return the text of a file of one of our daemons; as :func:`of`."""
    return _filled((_folder / 'files' / name).read_text(), values)


def merged(*configurations):
    """Merge dicts of sections; an option of a later one replaces."""
    result = {}
    for configuration in configurations:
        for section, options in configuration.items():
            result.setdefault(section, {}).update(options)
    return result


def _filled(text, values):
    return string.Template(text).substitute({**DEFAULTS, **values})
