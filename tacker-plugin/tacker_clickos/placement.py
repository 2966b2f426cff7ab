# SPDX-License-Identifier: Apache-2.0
"""Nova server groups of a VNF, for its affinity rules."""

from openstack import exceptions as sdk_exceptions

from tacker_clickos import exception
from tacker_clickos import outages
from tacker_clickos import own


def hints(connection, vnf_id, rule):
    """Return Nova's scheduler hints for a guest under a rule, or None.

    :param rule: model.Placement, or None
    :raises: ResourceNotUsable
    """
    if rule is None:
        return None
    name = '%s-%s' % (rule.name, vnf_id)
    found = _named(connection, name) or _create(connection, name, rule)
    return {'group': found.id}


def _named(connection, name):
    return next((group for group in own.server_groups(connection)
                 if group.name == name), None)


def _create(connection, name, rule):
    try:
        return outages.once(
            lambda: _named(connection, name),
            lambda: connection.compute.create_server_group(
                name=name, policy=rule.policy))
    except sdk_exceptions.HttpException as error:
        raise exception.ResourceNotUsable(
            kind='server group', name=name,
            reason=error.details or str(error))


def remove(connection, vnf_id):
    """Delete the server groups of a VNF."""
    for group in own.server_groups(connection):
        if group.name.endswith('-' + vnf_id):
            connection.compute.delete_server_group(group.id,
                                                   ignore_missing=True)
