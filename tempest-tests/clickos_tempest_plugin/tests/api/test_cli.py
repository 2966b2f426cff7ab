# SPDX-License-Identifier: Apache-2.0
"""The openstack command as a tenant types it."""

import json
import os
import subprocess
import sys

from tempest import config
from tempest.lib import decorators
from tempest.lib import exceptions

from clickos_tempest_plugin.common import csar
from clickos_tempest_plugin.tests import base

CONF = config.CONF


class CommandTest(base.ClickOSTest):
    """openstack clickos handler list, read, write; port stats; a second VNF.
    """

    @classmethod
    def resource_setup(cls):
        super().resource_setup()
        cls.vnf_id = cls.tenant.firewall(csar.firewall(), ['deny all'],
                                         cls.addClassResourceCleanup)

    def openstack(self, *arguments):
        """Run the command of this installation; return what it did."""
        user = self.os_primary.credentials
        environment = dict(
            os.environ, OS_AUTH_URL=CONF.identity.uri_v3,
            OS_IDENTITY_API_VERSION='3', OS_USERNAME=user.username,
            OS_PASSWORD=user.password, OS_PROJECT_NAME=user.project_name,
            OS_USER_DOMAIN_NAME=user.user_domain_name,
            OS_PROJECT_DOMAIN_NAME=user.project_domain_name)
        return subprocess.run(
            [os.path.join(os.path.dirname(sys.executable), 'openstack'),
             'clickos', *arguments], env=environment, text=True,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, timeout=60)

    @decorators.idempotent_id('d6e0f3f2-4a6e-4bb0-9a49-5a3b0bb6c001')
    def test_list(self):
        done = self.openstack('handler', 'list', '--vnf', self.vnf_id,
                              '--class', 'IPFilter', '-f', 'value')
        self.assertEqual(0, done.returncode, done.stderr)
        self.assertIn('fw.config True True', done.stdout)
        self.assertNotIn('passed.', done.stdout)

    @decorators.idempotent_id('d6e0f3f2-4a6e-4bb0-9a49-5a3b0bb6c002')
    def test_write_and_read_by_names(self):
        name = self.tenant.tacker.show_vnf(self.vnf_id)['vnfInstanceName']
        done = self.openstack('handler', 'write', '--vnf', name, 'fw.config',
                              'allow icmp, deny all')
        self.assertEqual(0, done.returncode, done.stderr)
        self.assertIn('fw.config: accepted, revision 1', done.stdout)
        server = self.tenant.servers.show_server(
            self.tenant.server_id(self.vnf_id))['server']
        done = self.openstack('handler', 'read', server['name'], 'fw.config')
        self.assertEqual('allow icmp, deny all', done.stdout.strip(),
                         done.stderr)

    @decorators.idempotent_id('d6e0f3f2-4a6e-4bb0-9a49-5a3b0bb6c004')
    def test_port_stats(self):
        done = self.openstack('port', 'stats', '--vnf', self.vnf_id,
                              '-f', 'json')
        self.assertEqual(0, done.returncode, done.stderr)
        rows = json.loads(done.stdout)
        self.assertEqual(['up', 'up'], [row['Link'] for row in rows])
        for row in rows:
            self.assertIsInstance(row['Dropped'], dict)

    @decorators.attr(type='negative')
    @decorators.idempotent_id('d6e0f3f2-4a6e-4bb0-9a49-5a3b0bb6c005')
    def test_a_second_vnf_of_one_name(self):
        vnf = self.tenant.tacker.show_vnf(self.vnf_id)
        caught = self.assertRaises(
            exceptions.Conflict, self.tenant.tacker.create_vnf,
            vnf['vnfdId'], vnf['vnfInstanceName'])
        self.assertIn('choose another name', str(caught))

    @decorators.idempotent_id('d6e0f3f2-4a6e-4bb0-9a49-5a3b0bb6c003')
    def test_a_refusal_is_shown_and_fails(self):
        done = self.openstack('handler', 'write', '--vnf', self.vnf_id,
                              'fw.config', 'allow nonsense')
        self.assertEqual(1, done.returncode)
        self.assertIn('HTTP 400, handler-error', done.stderr)
        self.assertNotIn('Traceback', done.stderr)
