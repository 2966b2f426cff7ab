# SPDX-License-Identifier: Apache-2.0
"""A transparent VNF: two networks become one."""

from tempest.lib import decorators

from clickos_tempest_plugin.common import csar
from clickos_tempest_plugin.common import traffic
from clickos_tempest_plugin.tests import base

#: The package's property writes to fw.config.
WIRE = '''
FromDevice(0) -> Queue -> ToDevice(1);
FromDevice(1) -> Queue -> ToDevice(0);
Idle -> fw :: IPFilter(deny all) -> Discard;
'''
SIZE_BYTES = 1024 * 1024


class WireTest(base.OnHostTest):
    """Two machines on two networks, and a wire between these."""

    def make_endpoint(self, network):
        """Attach a machine without a gateway to a network."""
        return traffic.Endpoint(
            self.tenant, self.os_admin, network,
            self.addCleanup, wired=True)

    @decorators.idempotent_id('6d0a3a52-7c0e-4a3b-9d0f-7d6f1d0c5a01')
    def test_two_networks_become_one(self):
        package = csar.firewall(
            click=lambda text: WIRE,
            vnfd=lambda text: text.replace('routed: true',
                                           'transparent: true'))
        vnf_id = self.tenant.firewall(package, None, self.addCleanup)
        left, right = map(self.make_endpoint, ('left', 'right'))
        self.assertTrue(left.can_ping(right))
        self.assertTrue(right.can_ping(left))
        right.serve_http()
        self.assertEqual(SIZE_BYTES, left.download(right, SIZE_BYTES))
        self.tenant.terminate(vnf_id)
        self.assertNothingLeft(vnf_id)
        self.assertFalse(left.can_ping(right))
