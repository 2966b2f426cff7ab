# SPDX-License-Identifier: Apache-2.0
"""Refuses to remove ports that a chain has."""

import contextlib

from openstack import exceptions as sdk_exceptions

from tacker_clickos import exception
from tacker_clickos import own


def require_none(connection, names):
    """Refuse while a hop of a chain has one of some ports.

    :param names: {id of a port: its name}
    :raises: PortInChain
    """
    with contextlib.suppress(sdk_exceptions.NotFoundException):
        for pair in own.port_pairs(connection, names):
            for port_id in (pair.ingress, pair.egress):
                if port_id in names:
                    raise exception.PortInChain(
                        kind='port', name=names[port_id],
                        reason='is in a chain; remove the hop from its '
                        'chains first (openstack clickos chain remove)')
