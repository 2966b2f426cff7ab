# SPDX-License-Identifier: Apache-2.0
"""YAML of a package: plain values that every parser reads alike."""

import yaml

from tacker_clickos.package import archive

MAX_DEPTH = 32
_FAST = getattr(yaml, 'CSafeLoader', yaml.SafeLoader)
_STARTS = (yaml.MappingStartEvent, yaml.SequenceStartEvent)
_ENDS = (yaml.MappingEndEvent, yaml.SequenceEndEvent)


def load(place, data):
    """Return the one document of a file.

    Aliases are refused since a few lines of them expand without end, tags
    since they name classes. Tacker reads a file with both parsers of PyYAML;
    where these differ, a check of one proves nothing about the other.

    :param data: bytes, of UTF-8
    :raises: PackageRefused
    """
    try:
        text = data.decode('utf-8')
        _check(place, text)
        fast = yaml.load(text, Loader=_FAST)  # nosec B506
        if fast != yaml.safe_load(text):
            raise archive.refused(place, 'its YAML has two meanings')
    except (yaml.YAMLError, ArithmeticError, RecursionError, TypeError,
            ValueError) as error:
        raise archive.refused(place, 'is not YAML in UTF-8: %s'
                              % str(error)[:200])
    return fast


def walk(value):
    """Yield (keys that lead there, value) of everything inside a value.

    A key is yielded as a value, too, with a last key of None.
    """
    waiting = [((), value)]
    while waiting:
        place, value = waiting.pop()
        yield place, value
        if isinstance(value, dict):
            waiting.extend((place + (key,), item)
                           for key, item in value.items())
            waiting.extend((place + (None,), key) for key in value)
        elif isinstance(value, (list, tuple)):
            waiting.extend((place, item) for item in value)


def _check(place, text):
    depth = 0
    for event in yaml.parse(text, Loader=_FAST):
        line = '%s:%d' % (place, event.start_mark.line + 1)
        if isinstance(event, yaml.AliasEvent):
            raise archive.refused(line, 'an alias (*%s); write the value '
                                  'out' % event.anchor[:64])
        if getattr(event, 'tag', None):
            raise archive.refused(line, 'a tag (%s); remove it'
                                  % event.tag[:64])
        depth += isinstance(event, _STARTS) - isinstance(event, _ENDS)
        if depth > MAX_DEPTH:
            raise archive.refused(line, 'more than %d levels' % MAX_DEPTH)
