# SPDX-License-Identifier: Apache-2.0
"""The hosts on which a VNF can run, by the name a person gives them."""

import dataclasses

from clickos_lab.config import hosts
from clickos_lab.host import domains
from clickos_lab.host import guests

NAMES = PROCESS, SECOND, XEN, SECOND_XEN = (
    'process', 'second', 'xen', 'second-xen')
_XENS = {XEN: hosts.XEN, SECOND_XEN: hosts.SECOND_XEN}


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
    if name in _XENS:
        return Target(_XENS[name], domains.Domains(state, _XENS[name]))
    host = hosts.SECOND if name == SECOND else hosts.PROCESS
    return Target(host, guests.Guests(state, host))
