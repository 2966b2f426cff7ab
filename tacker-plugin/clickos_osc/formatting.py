# SPDX-License-Identifier: Apache-2.0
"""Text from a guest, made fit for a terminal."""

import contextlib

from osc_lib import exceptions

from clickos_osc import lazy

api = lazy.module('clickos_client.api')

KEPT = '\n\t'


def text(value):
    """Escape what could control a terminal, keep the lines."""
    return ''.join(c if c in KEPT or c.isprintable() else _escaped(c)
                   for c in value)


def line(value):
    """Escape as text does, and line ends too."""
    return ''.join(c if c.isprintable() else _escaped(c) for c in value)


@contextlib.contextmanager
def refusals():
    """Show clickos-api's refusals as openstackclient shows errors."""
    try:
        yield
    except api.ClickOSError as exc:
        raise exceptions.CommandError(
            f'{text(exc.message)} (HTTP {exc.status}, {line(exc.code)})')


def _escaped(character):
    return character.encode('unicode_escape').decode()
