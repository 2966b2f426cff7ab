# SPDX-License-Identifier: Apache-2.0
"""A guest's ports follow Neutron while the guest runs."""

import contextlib
import time

from tempest.common import waiters as tempest_waiters
from tempest.lib.common.utils import data_utils
from tempest.lib import decorators
from tempest.lib import exceptions

from clickos_tempest_plugin.common import waiters
from clickos_tempest_plugin.tests import base

#: Sends 50 packets a second to the peer, and counts what comes from it.
TALKER = '''
RatedSource(DATA "hello", RATE 50)
  -> UDPIPEncap({ip}, 7, {peer_ip}, 7)
  -> EtherEncap(0x0800, {mac}, {peer_mac}) -> Queue -> ToDevice(0);
FromDevice(0) -> heard :: Counter -> Discard;
'''
#: What Neutron lets a member send to hide whose port it is.
THEFTS = (
    {'device_id': '', 'device_owner': ''},
    {'device_id': ''},
    {'device_owner': 'network:dhcp'},
    {'device_id': 'ffffffff-2222-4333-8444-555555555555'},
)
#: Without a packet for so long a guest is cut off.
SILENCE_S = 1


class PortsTest(base.OnHostTest):
    """Two guests that talk to each other on a network of their own."""

    def setUp(self):
        super().setUp()
        self.ports_client = self.os_primary.ports_client
        self.admin_ports = self.os_admin.ports_client
        self.ports = [self.tenant.make_port('left', self.addCleanup)
                      for _ in range(2)]
        self.servers = [self._boot(*pair) for pair in (
            self.ports, self.ports[::-1])]
        for server_id in self.servers:
            self.assertHears(server_id)

    def _boot(self, port, peer):
        text = TALKER.format(
            ip=port['fixed_ips'][0]['ip_address'], mac=port['mac_address'],
            peer_ip=peer['fixed_ips'][0]['ip_address'],
            peer_mac=peer['mac_address'])
        return self.tenant.boot(data_utils.rand_name('talker'), [port], text,
                                self.addCleanup)

    def heard(self, server_id):
        """Return how many packets a guest has from its peer."""
        return int(self.tenant.clickos.read_handler(server_id,
                                                    'heard.count'))

    def assertHears(self, server_id):
        """Check that packets arrive, soon."""
        before = self.heard(server_id)
        waiters.until(lambda: self.heard(server_id),
                      lambda seen: seen > before, f'{server_id} hears')

    def assertCutOff(self, *server_ids):
        """Check that packets stop, within the time of a lost message."""
        def silent():
            before = [self.heard(each) for each in server_ids]
            time.sleep(SILENCE_S)
            return before == [self.heard(each) for each in server_ids]
        waiters.until(silent, bool, f'{server_ids} are cut off', 30)

    def update(self, client, **values):
        """Update the first guest's port."""
        client.update_port(self.ports[0]['id'], **values)

    @decorators.attr(type='negative')
    @decorators.idempotent_id('4e8f1d7b-0c0e-4a7b-9f1e-0a7c5b0d2e21')
    def test_a_member_cannot_take_the_port_of_a_running_guest(self):
        for theft in THEFTS:
            caught = self.assertRaises(
                exceptions.Conflict, self.update, self.ports_client, **theft)
            self.assertIn('binding:host_id', str(caught))
        self.assertRaises(
            exceptions.Conflict,
            self.os_primary.networks_client.delete_network,
            self.ports[0]['network_id'])
        # Older policies let a member delete the port: then it is unplugged.
        deleted = False
        with contextlib.suppress(exceptions.Forbidden):
            self.ports_client.delete_port(self.ports[0]['id'])
            deleted = True
        check = self.assertCutOff if deleted else self.assertHears
        check(self.servers[1])

    @decorators.idempotent_id('4e8f1d7b-0c0e-4a7b-9f1e-0a7c5b0d2e22')
    def test_a_disabled_port_is_silent_until_it_is_enabled(self):
        self.update(self.ports_client, admin_state_up=False)
        self.assertCutOff(*self.servers)
        self.tenant.servers.reboot_server(self.servers[0], type='HARD')
        tempest_waiters.wait_for_server_status(
            self.tenant.servers, self.servers[0], 'ACTIVE')
        self.assertEqual(0, self.heard(self.servers[0]))
        self.assertCutOff(*self.servers)
        self.update(self.ports_client, admin_state_up=True)
        for server_id in self.servers:
            self.assertHears(server_id)

    @decorators.idempotent_id('4e8f1d7b-0c0e-4a7b-9f1e-0a7c5b0d2e23')
    def test_an_unbound_and_a_deleted_port_leave_the_switch(self):
        self.update(self.admin_ports, **{
            'device_id': '', 'device_owner': '', 'binding:host_id': ''})
        self.assertCutOff(*self.servers)
        self.ports_client.delete_port(self.ports[0]['id'])
        self.host.restart('cosmosd')
        self.admin_ports.delete_port(self.ports[1]['id'])
        self.assertCutOff(*self.servers)
        for server_id in self.servers:
            places = [left for left in self.host.leftovers(server_id)
                      if 'port' in str(left)]
            self.assertEqual([], places)
