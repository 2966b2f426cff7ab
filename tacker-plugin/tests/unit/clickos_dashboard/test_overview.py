# SPDX-License-Identifier: Apache-2.0
"""The first page."""

import types
from unittest import mock

from django.urls import reverse
from openstack_dashboard import api

from tests.unit.clickos_dashboard import base
from tests.unit.clickos_dashboard import cloud

INDEX = reverse('horizon:clickos:overview:index')


class OverviewTest(base.PageTest):

    def test_a_troubled_vnf_is_listed_with_its_reason(self):
        self.cloud.answers['GET /vnflcm/v1/vnf_lcm_op_occs'] = [
            cloud.operation(operationState='FAILED',
                            error={'detail': 'no host'})]
        self.shows(self.page(INDEX), 'Needs attention', 'edge', 'no host')

    def test_an_empty_project_is_told_what_to_do(self):
        for path in ('/vnfpkgm/v1/vnf_packages', '/vnflcm/v1/vnf_instances'):
            self.cloud.answers[f'GET {path}'] = []
        self.shows(self.page(INDEX), 'Upload a package to begin')

    def test_hosts_are_for_administrators(self):
        host = types.SimpleNamespace(
            hypervisor_hostname='rack-1', state='up', running_vms=2,
            memory_mb_used=16, memory_mb=2048)
        with mock.patch.object(api.nova, 'hypervisor_list', autospec=True,
                               return_value=[host]):
            self.hides(self.page(INDEX), 'rack-1')
            self._setup_user(roles=[{'id': '1', 'name': 'admin'}])
            self.shows(self.page(INDEX), 'rack-1')


class FormsTest(base.PageTest):

    def test_each_form_is_a_page_and_a_modal_window(self):
        vnf = (cloud.VNF,)
        for name, args in (
                ('packages:upload', ()), ('vnfs:launch', (cloud.PACKAGE,)),
                ('vnfs:update', vnf), ('vnfs:scale', vnf),
                ('vnfs:handler', (*vnf, cloud.SERVER, 'fw.config'))):
            path = reverse(f'horizon:clickos:{name}', args=args)
            with self.subTest(name):
                self.shows(self.page(path), '<title>', '<form')
                window = self.page(
                    path, headers={'X-Requested-With': 'XMLHttpRequest'})
                self.shows(window, '<form', 'class="modal')
                self.hides(window, '<title>')
