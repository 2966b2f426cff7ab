# SPDX-License-Identifier: Apache-2.0
"""Adds the line to a fault that names a file and what is in it."""

import re

from clickos_client import plain_yaml

#: "Definitions/fw.yaml: VDU1: configuration: property rules: wrong"
_PLACE = re.compile(r'(?P<file>[^\s:]+\.ya?ml): (?P<rest>.*)\Z', re.DOTALL)
_QUOTED = re.compile('"([^"]{1,128})"')
_LEADS = ('property ', 'connection point ')


def located(text, files):
    """Return a fault's text with the line after the file's name.

    :param text: the fault; it may name no file
    :param files: {name: bytes} of the package's YAML files
    """
    found = _PLACE.match(text)
    if found and found['file'] in files:
        _count, line = _line(files[found['file']], found['rest'].split(': '))
        return text if not line else '%s:%d: %s' % (
            found['file'], line, found['rest'])
    return _guessed(text, files)


def _guessed(text, files):
    """Add the file that has most of the names which a text quotes."""
    names = _QUOTED.findall(text)
    best = max(((*_line(content, names), name)
                for name, content in files.items()), default=(0, 0, ''))
    count, line, name = best
    return text if count < 2 else '%s:%d: %s' % (name, line, text)


def _line(content, names):
    """Return how many of the names are in a file, and the last one's line."""
    root = plain_yaml.nodes(content)
    node, line, count = root, 0, 0
    for name in names:
        for lead in _LEADS:
            name = name.removeprefix(lead)
        entry = _entry(node, name) or _entry(root, name)
        if entry is None:
            continue
        key, node = entry
        line = key.start_mark.line + 1
        count += 1
    return count, line


def _entry(node, name):
    """Return (key, value) of the nearest entry of this name below a node."""
    level = [node]
    while level:
        below = []
        for node in level:
            if plain_yaml.is_map(node):
                for key, value in node.value:
                    if key.value == name:
                        return key, value
                    below.append(value)
            elif plain_yaml.is_list(node):
                below.extend(node.value)
        level = below
    return None
