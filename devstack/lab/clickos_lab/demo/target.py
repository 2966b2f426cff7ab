# SPDX-License-Identifier: Apache-2.0
"""What differs between the hosts on which the VNF of a demonstration runs."""

import dataclasses

from clickos_lab.cloud import image
from clickos_lab.config import hosts
from clickos_lab.host import domains
from clickos_lab.host import guests

NAMES = ('process', 'xen')


@dataclasses.dataclass(frozen=True)
class Target:
    """A compute host.

    ``guests`` knows what its host has: :class:`guests.Guests` or
    :class:`domains.Domains`.
    """

    host: hosts.ComputeHost
    image: str
    guests: object


def of(name, state):
    """Return the target of a name."""
    if name == 'xen':
        return Target(hosts.XEN, image.XEN_NAME, domains.Domains(state))
    return Target(hosts.PROCESS, image.NAME, guests.Guests(state))
