# SPDX-License-Identifier: Apache-2.0
"""The hosts on which a VNF can run, by the name a person gives them."""

import dataclasses

from clickos_lab.config import hosts
from clickos_lab.host import domains
from clickos_lab.host import guests

NAMES = PROCESS, SECOND, XEN = 'process', 'second', 'xen'


@dataclasses.dataclass(frozen=True)
class Target:
    """A compute host.

    ``guests`` knows what its host has: :class:`guests.Guests` or
    :class:`domains.Domains`.
    """

    host: hosts.ComputeHost
    guests: guests.Guests | domains.Domains


def of(name, state):
    """Return the target of a name."""
    if name == XEN:
        return Target(hosts.XEN, domains.Domains(state))
    host = hosts.SECOND if name == SECOND else hosts.PROCESS
    return Target(host, guests.Guests(state, host))
