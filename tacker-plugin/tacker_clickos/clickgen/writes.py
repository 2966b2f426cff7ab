# SPDX-License-Identifier: Apache-2.0
"""Property values as Click text, and as handler writes."""

import re

_PLACEHOLDER = re.compile(r'\$([a-z][a-z0-9_]*)')
_WORD = re.compile(r'[A-Za-z0-9_.:@+-]+\Z')


def encode(prop, value):
    """Return a checked property value as the text of a handler write."""
    if isinstance(value, bool):
        return 'true' if value else 'false'
    if isinstance(value, list):
        return prop.separator.join(encode(prop.items, item)
                                   for item in value)
    if isinstance(value, dict):
        return _record(prop, value)
    return str(value)


def argument(prop, value):
    """Return a checked property value as an argument of an element.

    Quotes keep a string with spaces or slashes together; values have none.
    """
    text = encode(prop, value)
    if prop.type == 'string' and not _WORD.match(text):
        return '"%s"' % text
    return text


def render(configuration, values):
    """Return [[handler, text]] of the properties that have a handler.

    clickos-api alone writes shares of limits.
    """
    return [[prop.handler, encode(prop, values[name])]
            for name, prop in configuration.properties.items()
            if prop.handler and not prop.shared]


def _record(prop, value):
    """Fill in the format; a field that is absent leaves no gap."""
    text = _PLACEHOLDER.sub(
        lambda found: encode(prop.fields[found[1]], value[found[1]])
        if found[1] in value else '', prop.format)
    return ' '.join(text.split())
