# SPDX-License-Identifier: Apache-2.0
"""Pages of a project with 100 VNFs ask no service for each VNF."""

from django.urls import reverse

from tests.unit.clickos_dashboard import base
from tests.unit.clickos_dashboard import cloud
from tests.unit.clickos_dashboard import test_chains

_VNFS = 100
#: Requests of a page to services.
_MOST = 4
#: Those of a page that shows what is behind several services.
_MORE = {'topology:index': 5}


class RequestsTest(base.PageTest):

    def setUp(self):
        super().setUp()
        ids = [f'{i:08}-0000-4000-8000-000000000000' for i in range(_VNFS)]
        self.cloud.answers.update({
            'GET /vnflcm/v1/vnf_instances': [
                cloud.vnf(id=each, vnfInstanceName=f'edge-{each[:8]}')
                for each in ids],
            'GET /vnflcm/v1/vnf_lcm_op_occs': [
                cloud.operation(id=each, vnfInstanceId=each)
                for each in ids for _again in range(3)],
            **test_chains.answers()})
        self.asked = 0
        send = self.cloud.send

        def count(request, **kwargs):
            self.asked += 1
            return send(request, **kwargs)
        self.cloud.send = count

    def test_each_page(self):
        for name, *args in (
                ('overview:index',), ('topology:index',),
                ('packages:index',), ('vnfs:index',),
                ('vnfs:detail', cloud.VNF), ('chains:index',),
                ('chains:detail', test_chains.CHAIN), ('chains:create',),
                ('vnfs:launch', cloud.PACKAGE),
                ('packages:detail', cloud.PACKAGE)):
            path = reverse(f'horizon:clickos:{name}', args=args)
            self.asked = 0
            self.page(path)
            with self.subTest(name):
                self.assertLessEqual(self.asked, _MORE.get(name, _MOST))
