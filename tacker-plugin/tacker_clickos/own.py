# SPDX-License-Identifier: Apache-2.0
"""Finds things of the VIM's project; the one module that lists them.

Neutron and Glance also list what other projects share, and the ports of
others on a network of the project. Such a thing may have any name and any
description. So each function asks for the project's things, and checks the
owner in the answer.
"""

import itertools

from openstack import exceptions as sdk_exceptions

from tacker_clickos import exception

#: Images of a name or tag that are looked at, of the operator and of the
#: project each.
MOST_IMAGES = 64
#: Ids that one request names; more would make its line too long.
_IDS = 40


def ports(connection, mark):
    """Return the ports with a description.

    :raises: ResourceNotUsable, as all functions, without a project
    """
    project_id = _project(connection)
    return [port for port in connection.network.ports(
        description=mark, project_id=project_id)
        if (port.description, port.project_id) == (mark, project_id)]


def has_mac(connection, network_id, mac):
    """Return whether a port of a network, of any project, has an address."""
    return any(connection.network.ports(network_id=network_id,
                                        mac_address=mac))


def networks(connection, mark):
    """Return the networks with a description."""
    project_id = _project(connection)
    return [network for network in connection.network.networks(
        description=mark, project_id=project_id)
        if (network.description, network.project_id) == (mark, project_id)]


def network(connection, network_id):
    """Return a network by its id; None if the project has none."""
    return _by_id(connection, connection.network.get_network, network_id)


def security_group(connection, group_id, name):
    """Return the security group with an id, or else the one with a name.

    :param group_id: from the VNF's record, or None
    :returns: None if the project has neither
    """
    found = _by_id(connection, connection.network.get_security_group,
                   group_id)
    if found is not None:
        return found
    project_id = _project(connection)
    return next((group for group in connection.network.security_groups(
        name=name, project_id=project_id)
        if (group.name, group.project_id) == (name, project_id)), None)


def port_pairs(connection, port_ids):
    """Generate the port pairs of service chains that have one of some ports.

    A project may have any number of others.
    """
    project_id, ids = _project(connection), sorted(port_ids)
    for at in range(0, len(ids), _IDS):
        some = ids[at:at + _IDS]
        for side in 'ingress', 'egress':
            for pair in connection.network.sfc_port_pairs(
                    project_id=project_id, **{side: some}):
                if pair.project_id == project_id \
                        and getattr(pair, side) in some:
                    yield pair


def servers(connection, **query):
    """Return servers; Nova lists those of the project."""
    project_id = _project(connection)
    return [server for server in connection.compute.servers(**query)
            if server.project_id == project_id]


def server_groups(connection):
    """Return server groups; an early Nova does not tell their project."""
    known = (None, _project(connection))
    return [group for group in connection.compute.server_groups()
            if group.project_id in known]


def images(connection, name):
    """Return the operator's images of a name, then the project's.

    An image that another project shares may have any name. One without data,
    such as an operator's next one, can start no guest. Some clouds let
    members publish images: the operator is the owner of the oldest one.
    """
    found = [image for image in _images(connection, name=name)
             if image.name == name]
    operator = _operator(found)
    return sorted((image for image in found if _is_public(image, operator)
                   or image.owner == _project(connection)),
                  key=lambda image: (image.visibility != 'public', image.id))


def tagged_images(connection, tag, named):
    """Return images with a tag, as images() does, small ones first.

    :param named: images of the name, whose operator counts
    """
    operator = _operator(named)
    found = [image for image in _images(connection, tag=tag)
             if tag in (image.tags or ()) and (
                 _is_public(image, operator)
                 or image.owner == _project(connection))]
    return sorted(found, key=lambda image: (image.visibility != 'public',
                                            image.size or 0, image.id))


def _operator(found):
    """Return the owner of the oldest public image, or None."""
    return next((image.owner for image in sorted(
        found, key=lambda image: image.created_at or '')
        if image.visibility == 'public'), None)


def _is_public(image, operator):
    return image.visibility == 'public' and image.owner == operator


def _images(connection, **query):
    """Return public images, then the project's, each once.

    New ones do not keep Glance from naming the oldest, and Tacker's API reads
    a bounded number.
    """
    project_id = _project(connection)
    found = {}
    for more in {'visibility': 'public'}, {'owner': project_id}:
        some = itertools.islice(connection.image.images(
            status='active', limit=MOST_IMAGES, sort='created_at:asc',
            **query, **more), MOST_IMAGES)
        for image in some:
            if image.status == 'active' and all(
                    getattr(image, key) == value
                    for key, value in more.items()):
                found.setdefault(image.id, image)
    return list(found.values())


def _by_id(connection, get, key):
    if key is None:
        return None
    try:
        found = get(key)
    except sdk_exceptions.NotFoundException:
        return None
    return found if found.project_id == _project(connection) else None


def _project(connection):
    project_id = connection.current_project_id
    if not project_id:
        raise exception.ResourceNotUsable(
            kind='VIM', name='credentials',
            reason='are not for a project; name one')
    return project_id
