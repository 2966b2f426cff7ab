# SPDX-License-Identifier: Apache-2.0
"""Text from a guest, made fit for a terminal."""

KEPT = '\n\t'


def text(value):
    """Escape what could control a terminal, keep the lines."""
    return ''.join(c if c in KEPT or c.isprintable() else _escaped(c)
                   for c in value)


def line(value):
    """Escape as text does, and line ends too."""
    return ''.join(c if c.isprintable() else _escaped(c) for c in value)


def _escaped(character):
    return character.encode('unicode_escape').decode()
