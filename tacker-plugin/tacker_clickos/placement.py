# SPDX-License-Identifier: Apache-2.0
"""Nova server groups of a VNF, for its affinity rules."""

from openstack import exceptions as sdk_exceptions

from tacker_clickos import exception
from tacker_clickos import own


def hints(connection, vnf_id, rule):
    """Return Nova's scheduler hints for a guest under a rule, or None.

    :param rule: model.Placement, or None
    :raises: ResourceNotUsable
    """
    if rule is None:
        return None
    name = '%s-%s' % (rule.name, vnf_id)
    found = [group for group in own.server_groups(connection)
             if group.name == name]
    return {'group': (found or [_create(connection, name, rule)])[0].id}


def _create(connection, name, rule):
    try:
        return connection.compute.create_server_group(
            name=name, policy=rule.policy)
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
