# SPDX-License-Identifier: Apache-2.0
"""Handler writes for property values."""

MAX_BYTES = 16000


def encode(value):
    """Return a checked property value as Click text."""
    if isinstance(value, bool):
        return 'true' if value else 'false'
    if isinstance(value, list):
        return ', '.join(value)
    return str(value)


def render(configuration, values):
    """Return [[handler, text]] of the properties that have a handler."""
    return [[prop.handler, encode(values[name])]
            for name, prop in configuration.properties.items()
            if prop.handler]
