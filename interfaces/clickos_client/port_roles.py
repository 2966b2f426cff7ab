# SPDX-License-Identifier: Apache-2.0
"""Roles of Neutron ports: messages that only servers send.

clickos-api decides who has one, and notes it in the binding profile of the
port, which no tenant can write. The mechanism driver hands it to the switch.
"""

DHCP_SERVER = 'dhcp-server'
ROLES = (DHCP_SERVER,)
#: {role of a connection point in a VNFD: role of its port}. A relay sends the
#: answers of a server to clients.
OF_POINTS = {'dhcp-server': DHCP_SERVER, 'dhcp-relay': DHCP_SERVER}
#: the key of the list of roles in a binding profile
PROFILE_KEY = 'clickos_roles'


def of_profile(profile):
    """Return the roles that a binding profile has, known ones only."""
    found = (profile or {}).get(PROFILE_KEY)
    return [role for role in ROLES
            if isinstance(found, list) and role in found]
