# SPDX-License-Identifier: Apache-2.0
"""What cosmosd tells of guests, the same on every kind of host."""

import abc
import json

from clickos_lab import errors


class Listed(abc.ABC):
    """Guests by the UUIDs of their servers."""

    @abc.abstractmethod
    def cosmos(self, *arguments):
        """Run the toolstack's command line; return its output."""

    @abc.abstractmethod
    def system(self):
        """Tell what runs the guests."""

    def listed(self):
        """Return cosmosd's guests by UUID."""
        answer = json.loads(self.cosmos('list', '-o', 'json'))
        guests = answer['guests'] if isinstance(answer, dict) else answer
        return {guest['uuid']: guest for guest in guests}

    def find(self, server_id):
        """Return the guest of a server.

        :raises LabError: if there is none
        """
        guest = self.listed().get(server_id)
        if guest is None:
            raise errors.LabError(f'{server_id}: no such guest on this host')
        return guest
