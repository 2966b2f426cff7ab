# SPDX-License-Identifier: Apache-2.0
"""References to secrets in handler writes (docs/adr/0067)."""

import dataclasses
import re

from clickos_client import limits

#: What stands for the value of a secret.
REFERENCE = re.compile(
    r'clickos-secret:[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}')


class TooLong(ValueError):
    """The values would be longer than a guest takes."""


def reference(secret_id):
    """Return the reference to a secret of this id."""
    return f'clickos-secret:{secret_id}'


def references(writes):
    """Return the references in [[handler, value], ...] as a set."""
    return {found for _name, value in writes
            for found in REFERENCE.findall(value)}


@dataclasses.dataclass(frozen=True)
class Secrets:
    """Values of secrets by reference."""

    values: dict = dataclasses.field(default_factory=dict, repr=False)

    def resolved(self, writes):
        """Return writes with values in place of references.

        :raises TooLong: if they have more bytes than a request may have
        """
        left = limits.VALUES_BYTES
        found = []
        for name, value in writes:
            left -= len(value.encode())
            left -= sum(len(self._value(each).encode())
                        for each in REFERENCE.findall(value))
            if left < 0:
                raise TooLong(f'{name}: with its secrets the values are longer'
                              f' than {limits.VALUES_BYTES} bytes')
            found.append([name, REFERENCE.sub(
                lambda match: self._value(match[0]), value)])
        return found

    def _value(self, name):
        return self.values.get(name, name)

    def masked(self, text):
        """Return a text with references in place of values."""
        for name, value in sorted(self.values.items(),
                                  key=lambda pair: -len(pair[1])):
            if value:
                text = text.replace(value, name)
        return text
