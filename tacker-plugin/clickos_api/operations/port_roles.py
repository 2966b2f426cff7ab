# SPDX-License-Identifier: Apache-2.0
"""Roles of ports: what only servers of a network may send."""

from clickos_client import port_roles

from clickos_api import errors

_HOST, _PROFILE = 'binding:host_id', 'binding:profile'


class PortRoles:
    """Decides which ports have roles, and notes them at Neutron.

    :param cloud: ownership.Cloud
    :param audit: audit.Audit
    """

    def __init__(self, cloud, audit):
        self._cloud = cloud
        self._audit = audit

    def set(self, context, port, roles):
        """Give a port roles in place of those that it has; return them.

        Neutron binds a port again when its profile changes, so a port that
        a server uses keeps its roles.

        :param port: as Neutron shows it
        :param roles: list, of port_roles.ROLES
        :raises errors.ApiError: 409 (code port-in-use)
        """
        port_id = port['id']
        roles = [role for role in port_roles.ROLES if role in roles]
        profile = port.get(_PROFILE) or {}
        if port_roles.of_profile(profile) == roles:
            return roles
        if port.get(_HOST):
            raise errors.ApiError(
                f'port {port_id}: is bound to a host; set roles before a'
                ' server has it', code='port-in-use', status=409)
        self._cloud.update_port(port_id, {
            _PROFILE: {**profile, port_roles.PROFILE_KEY: roles}})
        self._audit.notify(context, 'port.roles', {'port_id': port_id,
                                                   'roles': roles})
        return roles
