# SPDX-License-Identifier: Apache-2.0
"""A VNF of Tacker's stock driver and one of ClickOS in one project."""

from tempest import config
from tempest.lib.common.utils import data_utils
from tempest.lib import decorators
from tempest.lib import exceptions

from clickos_tempest_plugin.common import csar
from clickos_tempest_plugin.common import heat_csar
from clickos_tempest_plugin.common import tenant
from clickos_tempest_plugin.tests import base
from clickos_tempest_plugin.tests.scenario import case

CONF = config.CONF


class BesideHeatTest(case.Rules, case.Scaling, base.OnHostTest):
    """The VIM's user of the stock VNF is an administrator of the project.

    Tacker's translation makes a flavor for each server, which no other user
    may. The caller is a member.
    """

    @classmethod
    def skip_checks(cls):
        super().skip_checks()
        if not CONF.clickos.heat:
            raise cls.skipException('[clickos] heat is off')

    @classmethod
    def resource_setup(cls):
        super().resource_setup()
        cls.clickos = cls.tenant.clickos
        cls.stock_vim = cls._make_vim()

    @classmethod
    def _make_vim(cls):
        """Register a VIM whose user may make flavors; return its id.

        The project may have a server of that memory.
        """
        member, password = (cls.os_primary.credentials,
                            data_utils.rand_password())
        quotas = cls.os_admin.quotas_client
        quotas.update_quota_set(member.project_id, ram=2 * heat_csar.MEMORY)
        cls.addClassResourceCleanup(quotas.delete_quota_set,
                                    member.project_id)
        users, roles = (cls.os_admin.users_v3_client,
                        cls.os_admin.roles_v3_client)
        user = users.create_user(
            name=data_utils.rand_name('heat'), password=password,
            project_id=member.project_id,
            domain_id=member.project_domain_id or 'default')['user']
        cls.addClassResourceCleanup(users.delete_user, user['id'])
        role = next(each for each in roles.list_roles()['roles']
                    if each['name'] == 'admin')
        roles.create_user_role_on_project(member.project_id, user['id'],
                                          role['id'])
        vim = cls.tenant.tacker.create_vim(
            name=data_utils.rand_name('heat'), type='openstack',
            auth_url=CONF.identity.uri_v3, is_default=False,
            vim_project={'name': member.project_name,
                         'project_domain_name': member.project_domain_name},
            auth_cred={'username': user['name'], 'password': password,
                       'user_domain_name': member.project_domain_name,
                       'cert_verify': 'False'})
        cls.addClassResourceCleanup(cls.tenant.tacker.delete_vim, vim['id'])
        return vim['id']

    def stock_server(self, vnf_id):
        """Return the server of the stock VNF, as an administrator sees it."""
        return self.os_admin.servers_client.show_server(
            self.tenant.server_id(vnf_id))['server']

    def make_stock(self):
        """Instantiate the VNF of the stock driver; return its id."""
        vnf_id = self.tenant.create_vnf(
            self.tenant.onboard(heat_csar.build(), self.addCleanup),
            self.addCleanup)
        tenant.completed(self.tenant.operate(
            vnf_id, 'instantiate', flavourId='simple',
            extVirtualLinks=[self.stock_link()],
            vimConnectionInfo=[{'id': 'vim', 'vimId': self.stock_vim,
                                'vimType': 'openstack'}]))
        return vnf_id

    def stock_link(self):
        """Return the link of its connection point, with any address."""
        network = self.tenant.networks['left']
        return {'id': 'left', 'resourceId': network.id, 'extCps': [{
            'cpdId': 'left', 'cpConfig': [{'cpProtocolData': [{
                'layerProtocol': 'IP_OVER_ETHERNET',
                'ipOverEthernet': {'ipAddresses': [{
                    'type': 'IPV4', 'subnetId': network.subnet_id,
                    'numDynamicAddresses': 1}]}}]}]}]}

    @decorators.attr(type='slow')
    @decorators.idempotent_id('b0d7c2de-5f0e-4b43-a2a7-7f4c1a6e5d10')
    def test_both_live_in_one_project(self):
        stock = self.make_stock()
        self.vnf_id = self.tenant.firewall(csar.firewall(), case.OPEN,
                                           self.addCleanup)
        self.server_id = self.tenant.server_id(self.vnf_id)
        server = self.stock_server(stock)
        ours = self.os_admin.servers_client.show_server(
            self.server_id)['server']
        self.assertEqual(['ACTIVE', 'ACTIVE'],
                         [server['status'], ours['status']])
        self.assertNotEqual(server['OS-EXT-SRV-ATTR:host'],
                            ours['OS-EXT-SRV-ATTR:host'])
        # Ours is a guest with handlers, before and after it scales and heals.
        self.assertEqual(case.OPEN, self.rules())
        self.scale('SCALE_OUT')
        self.assertEqual(2, len(self.guests()))
        self.scale('SCALE_IN')
        self.tenant.heal(self.vnf_id)
        self.server_id = self.tenant.server_id(self.vnf_id)
        self.assertEqual(case.OPEN, self.rules())
        # The other one has no properties, and nothing has touched it.
        refused = self.assertRaises(
            exceptions.BadRequest, self.tenant.tacker.update_vnf, stock,
            metadata={'clickos_properties': {'rules': case.OPEN}})
        self.assertIn('has no guests of ClickOS', str(refused))
        self.assertEqual(server['id'], self.stock_server(stock)['id'])
        self.assertNotIn('clickosState', self.tenant.tacker.show_vnf(
            stock).get('metadata') or {})
        self.tenant.terminate(self.vnf_id)
        self.assertNothingLeft(self.vnf_id)
        self.assertEqual('ACTIVE', self.stock_server(stock)['status'])
        self.tenant.terminate(stock)
        self.assertRaises(
            exceptions.NotFound, self.os_admin.servers_client.show_server,
            server['id'])

    @decorators.attr(type='slow')
    @decorators.idempotent_id('d6a4c1b7-90fd-4f5c-8c0a-1b8e2f7a9c34')
    def test_no_member_brings_a_script(self):
        package = self.tenant.tacker.create_package()['id']
        self.addCleanup(self.tenant.tacker.delete_package, package)
        for name in ('UserData/lcm.py', 'BaseHOT/simple/plain.yaml'):
            refused = self.assertRaises(
                exceptions.BadRequest, self.tenant.tacker.upload_package,
                package, heat_csar.build({name: b'a: b\n'}))
            self.assertIn('rule clickos:stock_scripts', str(refused))
        vnf_id = self.tenant.create_vnf(
            self.tenant.onboard(heat_csar.build(), self.addCleanup),
            self.addCleanup)
        refused = self.assertRaises(
            exceptions.BadRequest, self.tenant.tacker.start, vnf_id,
            'instantiate', flavourId='simple', additionalParams={
                'lcm-operation-user-data': 'lcm.py',
                'lcm-operation-user-data-class': 'Lcm'})
        self.assertIn('ClickOS runs no script', str(refused))
