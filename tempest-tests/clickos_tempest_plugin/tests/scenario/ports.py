# SPDX-License-Identifier: Apache-2.0
"""Two guests that talk to each other."""

import time

from tempest.lib.common.utils import data_utils

from clickos_tempest_plugin.common import waiters
from clickos_tempest_plugin.tests import base

#: Sends 50 packets a second to the peer, and counts what comes from it.
TALKER = '''
source :: RatedSource(DATA "hello", RATE 50)
  -> UDPIPEncap({ip}, 7, {peer_ip}, 7)
  -> EtherEncap(0x0800, {mac}, {peer_mac}) -> Queue -> ToDevice(0);
FromDevice(0) -> heard :: Counter -> Discard;
'''
#: Without a packet for this long a guest is cut off.
SILENCE_S = 1


class PortsCase(base.OnHostTest):
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
