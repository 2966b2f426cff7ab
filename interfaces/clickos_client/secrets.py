# SPDX-License-Identifier: Apache-2.0
"""References to secrets in handler writes (docs/adr/0067)."""

import dataclasses
import re

from clickos_client import limits

#: What stands for the value of a secret.
REFERENCE = re.compile(
    r'clickos-secret:[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}')


#: In place of what a guest said about values that have secrets.
HIDDEN = ('writes: the guest refused them; the values have secrets, so its'
          ' reason is not shown')
#: Codes of cosmosd whose messages have no words of a guest about writes.
_NOT_OF_GUEST = frozenset((
    'bad-config', 'bad-image', 'busy', 'client-timeout', 'dead-guest',
    'exists', 'no-memory', 'no-such-guest', 'not-active', 'stale', 'state-dir',
    'store', 'switch', 'timeout', 'too-many', 'unavailable', 'unsupported'))


class TooLong(ValueError):
    """The values would be longer than a guest takes."""


def reference(secret_id):
    """Return the reference to a secret of this id."""
    return f'clickos-secret:{secret_id}'


def shown(code, message):
    """Return the message of an error about writes that have secrets.

    A guest may repeat a value in any spelling: escaped, quoted, cut or in
    parts. So its words are not shown at all.

    :param code: of cosmosd
    """
    return message if code in _NOT_OF_GUEST else HIDDEN


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
