# SPDX-License-Identifier: Apache-2.0
"""The properties of a connection point that the driver follows."""

from clickos_client import port_roles

from tacker_clickos.vnfd import model
from tacker_clickos.vnfd import topology

#: Layer protocols of SOL001 that are IP; others say nothing of addresses.
_VERSIONS = {'ipv4': 4, 'ipv6': 6}
#: Roles of SOL001 in an E-Tree, without an effect here.
_OF_TREES = ('root', 'leaf')


def read(place, node):
    """Return the model.Point of a node.

    :raises: VnfdInvalid for a role that is not known
    """
    properties = topology.dig(node, 'properties')
    protocols = properties.get('layer_protocols')
    found = {_VERSIONS[name] for name in
             (protocols if isinstance(protocols, list) else ())
             if name in _VERSIONS}
    return model.Point(tuple(sorted(found)) or (4,),
                       _role(place, properties.get('role')))


def _role(place, role):
    if role is None or role in _OF_TREES:
        return None
    if role not in port_roles.OF_POINTS:
        raise topology.refused(place, 'role: expected one of %s, got %r' % (
            ', '.join((*port_roles.OF_POINTS, *_OF_TREES)), str(role)[:32]))
    return port_roles.OF_POINTS[role]
