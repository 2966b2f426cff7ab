# SPDX-License-Identifier: Apache-2.0
"""The one budget of time of a request about a guest.

A request carries the time that the guest has. Each transport adds the same
margin to it, so an answer of the guest is never lost on its way.
"""

#: Seconds for a transport: the socket of the daemon, and the bus.
MARGIN_S = 5
#: What a guest has if the request does not say it.
GUEST_S = 5


def bus_s(guest_s):
    """Return the seconds that clickos-api waits for an agent.

    :param guest_s: that the guest has
    """
    return guest_s + 2 * MARGIN_S
