# SPDX-License-Identifier: Apache-2.0
"""A power cut of a compute host; what ran before runs again, unasked."""

from tempest.lib.common.utils import data_utils
from tempest.lib import decorators
from tempest.lib import exceptions

from clickos_tempest_plugin.common import waiters
from clickos_tempest_plugin.tests import base
from clickos_tempest_plugin.tests.scenario import case
from clickos_tempest_plugin.tests.scenario import test_chains

RULES = ['allow icmp', 'deny all']
#: the answer of ``offload_state``, as :meth:`read` gives it
OFFLOADED = ['0 active', '1 active']
#: A boot, the starts of the guests, and the agent's look at ports and chains.
_BOOT_S = 240
#: Answers while the host boots.
_AWAY = (exceptions.ServerFault, exceptions.UnexpectedResponseCode,
         exceptions.Conflict, exceptions.NotFound)


@decorators.serial
class PowerCutBase(case.FirewallCase):
    """A firewall with a live rule, whose host loses its power."""

    #: the default image of Xen hosts has no offload
    offloads = True

    def cut_the_power(self):
        """Acknowledged writes, rules of the switch, and traffic come back."""
        self.clickos.write_handler(self.server_id, 'fw.config',
                                   ', '.join(RULES))
        if self.offloads:
            self.clickos.write_handler(self.server_id, 'fw.offload', 'true')
            self.await_offload()
        self.host.power_cut()
        waiters.until(lambda: self.left.can_ping(self.right), bool,
                      'pings through the firewall after the boot', _BOOT_S)
        self.assertEqual(RULES, self.rules())
        if self.offloads:
            self.await_offload()
        self.assertAsBefore(self.server_id)

    def await_offload(self):
        """Wait until the switch decides for both devices of the guest."""
        waiters.until(lambda: self.read('fw.offload_state'),
                      lambda seen: (seen or '').splitlines() == OFFLOADED,
                      'rules of the switch', _BOOT_S)

    def read(self, handler):
        """Return a handler's value; None while the host boots."""
        try:
            return self.clickos.read_handler(self.server_id, handler)
        except _AWAY:
            return None

    def assertAsBefore(self, server_id):
        """Nova calls a server active, and has neither stopped nor started it.
        """
        server = self.tenant.servers.show_server(server_id)['server']
        self.assertEqual(('ACTIVE', 1), (
            server['status'], server['OS-EXT-STS:power_state']))
        actions = self.tenant.servers.list_instance_actions(server_id)
        self.assertEqual(['create'], [
            each['action'] for each in actions['instanceActions']])


class PowerCutTest(test_chains.SfcMixin, PowerCutBase):

    limit_s = 900

    @decorators.attr(type='slow')
    @decorators.idempotent_id('2d0c2f7e-5a37-4d1c-8f6e-3b9c1e7a5d01')
    def test_guests_chains_and_rules_come_back_on_a_process_host(self):
        self.make_ends()
        ports = [self.tenant.make_port('left', self.addCleanup,
                                       port_security_enabled=False)
                 for _ in range(2)]
        hop = self.tenant.boot(data_utils.rand_name('wire'), ports,
                               test_chains.WIRE, self.addCleanup)
        pair = self.make('port_pair', ingress=ports[0]['id'],
                         egress=ports[1]['id'])
        chain = self.make_chain([self.make('port_pair_group',
                                           port_pairs=[pair])])
        self.assertHops(chain, 1)
        self.assertTrue(self.client.can_ping(self.server))
        self.cut_the_power()
        self.assertHops(chain, 1)
        waiters.until(lambda: self.client.can_ping(self.server), bool,
                      'pings through the chain after the boot', _BOOT_S)
        self.assertGreater(self.passed(hop), 0)
        self.assertAsBefore(hop)


class PowerCutOnXenTest(base.OnXenMixin, PowerCutBase):

    limit_s = 900
    offloads = False

    @decorators.attr(type='slow')
    @decorators.idempotent_id('2d0c2f7e-5a37-4d1c-8f6e-3b9c1e7a5d02')
    def test_a_guest_and_its_rules_come_back_on_a_xen_host(self):
        self.cut_the_power()
