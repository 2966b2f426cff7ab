# SPDX-License-Identifier: Apache-2.0
"""A guest of a Xen host gets the image that has its elements."""

from tempest import config
from tempest.lib import decorators

from clickos_tempest_plugin.common import csar
from clickos_tempest_plugin.common import tenant
from clickos_tempest_plugin.tests import base
from clickos_tempest_plugin.tests.scenario import case

CONF = config.CONF
#: Of the group test, which the default image lacks.
_OTHER = 'NullTask;\n'


class ProfilesOnXenTest(base.OnXenMixin, case.FirewallCase):

    @decorators.attr(type='slow')
    @decorators.idempotent_id('a51c1b1e-6c0c-4f5e-9a35-6c2f6f3a7d03')
    def test_elements_of_another_profile_get_its_image(self):
        self.assertEqual(CONF.clickos.xen_image,
                         self.image_of(self.server_id))
        self.tenant.terminate(self.vnf_id)    # the next has its addresses
        vnfd_id = self.tenant.onboard(csar.firewall(
            vnfd=self.on_host, click=lambda text: text + _OTHER),
            self.addCleanup)
        vnf_id = self.tenant.create_vnf(vnfd_id, self.addCleanup)
        tenant.completed(self.tenant.instantiate(vnf_id, ['deny all']))
        self.assertEqual(f'{CONF.clickos.xen_image}-full', self.image_of(
            self.tenant.server_id(vnf_id)))
        self.assertEqual('deny all', self.tenant.clickos.read_handler(
            vnf_id, 'fw.config', 'vnfs').strip())

    def image_of(self, server_id):
        """Return the name of a server's image."""
        server = self.os_primary.servers_client.show_server(server_id)
        return self.os_primary.image_client_v2.show_image(
            server['server']['image']['id'])['name']
