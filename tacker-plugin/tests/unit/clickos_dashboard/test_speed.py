# SPDX-License-Identifier: Apache-2.0
"""Pages of a project with 100 VNFs: requests and processor time."""

import time

from django.urls import reverse

from tests.unit.clickos_dashboard import base
from tests.unit.clickos_dashboard import cloud
from tests.unit.clickos_dashboard import test_chains

_VNFS = 100
#: Seconds of the processor that a page may take.
_LIMIT_S = 0.5
#: Requests to services; a page asks none for each VNF.
_MOST = 4


class SpeedTest(base.PageTest):

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
                ('overview:index',), ('packages:index',), ('vnfs:index',),
                ('vnfs:detail', cloud.VNF), ('chains:index',),
                ('chains:detail', test_chains.CHAIN), ('chains:create',),
                ('vnfs:launch', cloud.PACKAGE),
                ('packages:detail', cloud.PACKAGE)):
            path = reverse(f'horizon:clickos:{name}', args=args)
            self.page(path)     # loads templates and modules
            self.asked = 0
            began_s = time.process_time()
            self.page(path)
            took_s = time.process_time() - began_s
            with self.subTest(name):
                self.assertLessEqual(self.asked, _MOST)
                self.assertLess(took_s, _LIMIT_S)
