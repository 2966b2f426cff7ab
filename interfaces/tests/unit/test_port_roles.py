# SPDX-License-Identifier: Apache-2.0
"""The roles that a binding profile gives a port."""

import unittest

from clickos_client import port_roles


class PortRolesTest(unittest.TestCase):

    def test_known_roles_of_a_profile(self):
        for profile, roles in (
                (None, []), ({}, []), ({'clickos_roles': None}, []),
                ({'clickos_roles': 'dhcp-server'}, []),
                ({'clickos_roles': ['router', 7]}, []),
                ({'clickos_roles': ['dhcp-server', 'router']},
                 ['dhcp-server'])):
            self.assertEqual(roles, port_roles.of_profile(profile), profile)

    def test_each_role_of_a_connection_point_is_one_of_ports(self):
        self.assertLessEqual(set(port_roles.OF_POINTS.values()),
                             set(port_roles.ROLES))
