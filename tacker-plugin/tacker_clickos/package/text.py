# SPDX-License-Identifier: Apache-2.0
"""YAML of a package: plain values that every parser reads alike."""

from clickos_client import plain_yaml

from tacker_clickos.package import archive


def load(place, data, may_repeat=False):
    """Return the one document of a file.

    Tacker reads a file with both parsers of PyYAML. Where these differ, a
    check of one proves nothing about the other.

    :param data: bytes, of UTF-8
    :param may_repeat: see plain_yaml.load_alike
    :raises: PackageRefused
    """
    try:
        return plain_yaml.load_alike(data, may_repeat)
    except plain_yaml.Refused as fault:
        raise archive.refused(
            '%s:%d' % (place, fault.line) if fault.line else place,
            str(fault))


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
