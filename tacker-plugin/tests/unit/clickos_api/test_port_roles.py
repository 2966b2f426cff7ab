# SPDX-License-Identifier: Apache-2.0
"""Roles of ports, noted in their binding profiles."""

import uuid

from tests.unit.clickos_api import base

PROFILE = 'binding:profile'
ROLE = ['dhcp-server']


class PortRolesTest(base.TestCase):
    """A port of the project on a network of the project."""

    def setUp(self):
        super().setUp()
        self.port_id = str(uuid.uuid4())
        self.add_port()

    def add_port(self, **values):
        """Make the port, or another one of its id."""
        self.cloud.add_port(self.port_id, self.project_id, 'net', **values)

    def set(self, roles=ROLE, token=None):
        """Ask for roles of the port."""
        return self.call('PUT', f'/v1/ports/{self.port_id}/roles', token,
                         json={'roles': roles})

    def profile(self):
        """Return the binding profile that Neutron has."""
        return self.cloud.networking['ports', self.port_id][PROFILE]

    def test_a_role_on_a_network_of_the_project(self):
        self.add_port(**{PROFILE: {'of nova': 1}})
        self.assertEqual((200, {'roles': ROLE}), self.set())
        self.assertEqual({'of nova': 1, 'clickos_roles': ROLE},
                         self.profile())
        self.assertEqual((200, {'roles': []}), self.set([]))
        self.assertEqual({'of nova': 1, 'clickos_roles': []}, self.profile())

    def test_no_role_on_a_network_of_another_project(self):
        self.add_port(owner=uuid.uuid4().hex)
        status, body = self.set()
        self.assertEqual(403, status)
        self.assertIn('clickos:port:set_roles', body['error']['message'])
        self.assertEqual({}, self.profile())
        admin = self.caller(uuid.uuid4().hex, 'admin', 'member')
        self.assertEqual(200, self.set(token=admin)[0])

    def test_every_role_of_a_caller(self):
        elsewhere = uuid.uuid4().hex
        for project, roles, status in (
                (self.project_id, ('reader',), 403),
                (elsewhere, ('member', 'reader'), 404),
                (elsewhere, ('service',), 404)):
            with self.subTest(project=project, roles=roles):
                token = self.caller(project, *roles)
                self.assertEqual(status, self.set(token=token)[0])
                self.assertEqual({}, self.profile())

    def test_a_foreign_port_on_a_network_of_the_caller(self):
        self.cloud.add_port(self.port_id, uuid.uuid4().hex, 'net',
                            owner=self.project_id)
        self.assertEqual(404, self.set()[0])
        self.assertEqual({}, self.profile())

    def test_a_bound_port_keeps_its_roles(self):
        self.add_port(**{'binding:host_id': 'host1'})
        status, body = self.set()
        self.assertEqual((409, 'port-in-use'),
                         (status, body['error']['code']))
        self.assertEqual({}, self.profile())
        self.assertEqual(200, self.set([])[0], 'it has none')

    def test_unknown_roles(self):
        for roles in (['router'], 'dhcp-server', [1], None):
            self.assertEqual(400, self.set(roles)[0], roles)
