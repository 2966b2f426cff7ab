# SPDX-License-Identifier: Apache-2.0
"""Pages of a member of a project, on a cloud of their own."""

from unittest import mock

from openstack_dashboard import api
from openstack_dashboard.test import helpers

from tests.unit.clickos_dashboard import cloud


class PageTest(helpers.TestCase):
    """Asks for pages as Horizon's tests do."""

    #: what the data of Horizon's tests set
    exceptions: object
    networks: object
    ports: object
    service_catalog: list
    tenant: object
    token: object

    def _setup_test_data(self):
        super()._setup_test_data()
        for kind, url in (('nfv-orchestration', cloud.TACKER),
                          ('clickos', cloud.CLICKOS)):
            self.service_catalog.append({
                'type': kind, 'name': kind, 'endpoints_links': [],
                'endpoints': [{'region': 'RegionOne', 'interface': 'public',
                               'url': url, 'id': kind}]})

    def setUp(self):
        super().setUp()
        self.cloud = cloud.Cloud()
        port, network = self.ports.first(), self.networks.first()
        port._apidict.update(description=f'clickos-vnf:{cloud.VNF}',
                             project_id=self.tenant.id,
                             name='VDU1-0-left', network_id=network.id)
        patches = (
            self.cloud.in_place(),
            mock.patch.object(api.neutron, 'port_list', autospec=True,
                              return_value=[port]),
            mock.patch.object(api.neutron, 'network_list', autospec=True,
                              return_value=self.networks.list()[:2]),
            mock.patch.object(api.neutron, 'network_list_for_tenant',
                              autospec=True,
                              return_value=self.networks.list()[:2]))
        for patch in patches:
            patch.start()
            self.addCleanup(patch.stop)

    def page(self, path, status=200, **options):
        """Return the text of a page."""
        answer = self.client.get(path, **options)
        self.assertEqual(status, answer.status_code, answer.content[:2000])
        return answer.content.decode()

    def shows(self, text, *wanted):
        """Check that a page holds texts, and quote only what is missing."""
        self.assertEqual([], [each for each in wanted if each not in text])

    def hides(self, text, *unwanted):
        """Check that a page holds none of some texts."""
        self.assertEqual([], [text[max(0, text.find(e) - 80):][:160]
                              for e in unwanted if e in text])
