# SPDX-License-Identifier: Apache-2.0
"""A transparent VNF: two networks become one."""

from tempest import config
from tempest.lib.common.utils import data_utils
from tempest.lib import decorators

from clickos_tempest_plugin.common import csar
from clickos_tempest_plugin.common import traffic
from clickos_tempest_plugin.common import waiters
from clickos_tempest_plugin.tests import base

CONF = config.CONF

#: The package's property writes to fw.config.
WIRE = '''
FromDevice(0) -> Queue -> ToDevice(1);
FromDevice(1) -> Queue -> ToDevice(0);
Idle -> fw :: IPFilter(deny all) -> Discard;
'''
NEIGHBOR = 'FromDevice(0) -> Discard; FromDevice(1) -> Discard;'
SIZE_BYTES = 1024 * 1024
IP6_NET = 'fd00:10::/64'
IP6S = 'fd00:10::1', 'fd00:10::2'


class WireCase(base.OnHostTest):
    """Two machines on two networks, and a wire between these."""

    def make_endpoint(self, network):
        """Attach a machine without a gateway to a network."""
        return traffic.Endpoint(
            self.tenant, self.os_admin, network,
            self.addCleanup, wired=True, allow=(IP6_NET,))

    def assertJoined(self):
        """Check that all kinds of packets pass; return the machines."""
        left, right = map(self.make_endpoint, ('left', 'right'))
        waiters.until(lambda: left.can_ping(right), bool,
                      'the wire passes packets')
        self.assertTrue(right.can_ping(left))
        for machine, address in zip((left, right), IP6S):
            machine.add_addresses(f'{address}/64')
        # Each has to find the other's MAC address first (RFC 4861).
        self.assertTrue(left.can_ping_address(IP6S[1]))
        self.assertTrue(right.can_ping_address(IP6S[0]))
        right.serve_http()
        self.assertEqual(SIZE_BYTES, left.download(right, SIZE_BYTES))
        return left, right


class WireTest(WireCase):
    """A VNF is the wire."""

    @decorators.attr(type='slow')
    @decorators.idempotent_id('6d0a3a52-7c0e-4a3b-9d0f-7d6f1d0c5a01')
    def test_two_networks_become_one(self):
        package = csar.firewall(
            click=lambda text: WIRE,
            vnfd=lambda text: text.replace('routed: true',
                                           'transparent: true'))
        vnf_id = self.tenant.firewall(package, None, self.addCleanup)
        left, right = self.assertJoined()
        self.tenant.terminate(vnf_id)
        self.assertNothingLeft(vnf_id)
        self.assertTrue(left.is_cut_off(right))


class WireBetweenHostsTest(base.TwoHostsMixin, WireCase):
    """The same, and the wire is on another host than the machines."""

    @decorators.attr(type='slow')
    @decorators.idempotent_id('6d0a3a52-7c0e-4a3b-9d0f-7d6f1d0c5a02')
    def test_two_networks_become_one(self):
        # A guest of each network is at the machines' host, as Neutron sees it.
        self.boot('neighbor', NEIGHBOR)
        self.boot('wire', WIRE, availability_zone=CONF.clickos.second_zone)
        self.assertJoined()

    def boot(self, name, text, **wanted):
        """Start a guest with an open port on each of the networks."""
        ports = [self.tenant.make_port(
            network, self.addCleanup, port_security_enabled=False)
            for network in ('left', 'right')]
        self.tenant.boot(data_utils.rand_name(name), ports, text,
                         self.addCleanup, **wanted)
