# SPDX-License-Identifier: Apache-2.0
"""A server moves to another host while packets pass it."""

import time

from tempest.lib.common import api_microversion_fixture
from tempest.lib.common.utils import data_utils
from tempest.lib import decorators

from clickos_tempest_plugin.common import traffic
from clickos_tempest_plugin.common import waiters
from clickos_tempest_plugin.tests import base

#: Translates addresses and ports from device 0 to device 1.
NAT = '''
elementclass Kinds {{ input -> c :: Classifier(
  12/0806 20/0001, 12/0806 20/0002, 12/0800, -);
  c[0] -> [0] output; c[1] -> [1] output; c[2] -> [2] output;
  c[3] -> Discard; }}
FromDevice(0) -> c0 :: Kinds; FromDevice(1) -> c1 :: Kinds;
to0 :: Queue -> ToDevice(0); to1 :: Queue -> ToDevice(1);
c0[0] -> ARPResponder({inner_ip} {inner_mac}) -> to0;
c1[0] -> ARPResponder({outer_ip} {outer_mac}) -> to1;
arp0 :: ARPQuerier({inner_ip}, {inner_mac}) -> to0;
arp1 :: ARPQuerier({outer_ip}, {outer_mac}) -> to1;
c0[1] -> [1] arp0; c1[1] -> [1] arp1;
nat :: IPRewriter(pattern {outer_ip} 1024-65535 - - 0 1, drop);
c0[2] -> Strip(14) -> CheckIPHeader -> passed :: Counter -> [0] nat;
c1[2] -> Strip(14) -> CheckIPHeader -> [1] nat;
nat[0] -> GetIPAddress(16) -> arp1; nat[1] -> GetIPAddress(16) -> arp0;
'''
PORT = 7000
SERVER = f'''
import socket
server = socket.create_server(("", {PORT}))
while True:
    peer, _ = server.accept()
    while data := peer.recv(4096):
        peer.sendall(data)
'''
#: Sends a line every 10 ms on one connection, and prints each second at
#: which an answer came. A connection that is lost ends it.
CLIENT = f'''
import socket, sys, threading, time
peer = socket.create_connection((sys.argv[1], {PORT}), 10)
peer.settimeout(60)
def send():
    while True:
        peer.sendall(b"0123456789")
        time.sleep(0.01)
threading.Thread(target=send, daemon=True).start()
begin, told = time.monotonic(), -1
while peer.recv(4096):
    second = int(time.monotonic() - begin)
    if second > told:
        print(second, flush=True)
        told = second
'''


class LiveMigrationTest(base.TwoHostsMixin, base.OnHostTest):
    """A NAT between a client and a server."""

    def setUp(self):
        super().setUp()
        self.admin = self.os_admin.servers_client
        self.servers = self.tenant.servers
        # A server stays on each host, so the networks reach both.
        for zone in ({}, {'availability_zone': self.second_zone()}):
            self.tenant.boot(
                data_utils.rand_name('stays'),
                [self.make_port(name) for name in ('left', 'right')],
                'Idle -> Discard;', self.addCleanup, **zone)

    def make_port(self, network):
        """Make a port that any packet may leave."""
        port = self.tenant.make_port(network, self.addCleanup,
                                     security_groups=[])
        return self.os_primary.ports_client.update_port(
            port['id'], port_security_enabled=False)['port']

    def host_of(self, server_id):
        """Return the name of a server's host."""
        return self.admin.show_server(server_id)['server'][
            'OS-EXT-SRV-ATTR:host']

    def second_name(self):
        """Return the name of the second host."""
        aggregates = self.os_admin.aggregates_client.list_aggregates()
        return next(each['hosts'][0] for each in aggregates['aggregates']
                    if each['availability_zone'] == self.second_zone())

    def migrate(self, server_id, name):
        """Move a server to a host while it runs."""
        self.admin.live_migrate_server(server_id, host=name,
                                       block_migration='auto', force=True)
        waiters.until(lambda: self.host_of(server_id),
                      lambda seen: seen == name, f'{server_id} on {name}', 60)
        waiters.server(self.servers, server_id)

    def boot_nat(self):
        """Start the NAT; return its server's id and its inner port."""
        inner, outer = ports = [self.make_port(name)
                                for name in ('left', 'right')]
        text = NAT.format(
            inner_ip=inner['fixed_ips'][0]['ip_address'],
            inner_mac=inner['mac_address'],
            outer_ip=outer['fixed_ips'][0]['ip_address'],
            outer_mac=outer['mac_address'])
        return self.tenant.boot(data_utils.rand_name('nat'), ports, text,
                                self.addCleanup), inner

    @decorators.attr(type='slow')
    @decorators.idempotent_id('6f0d1c53-2b8e-4f5d-9a40-0c1f7d3b9e05')
    def test_a_tcp_connection_through_a_nat_survives(self):
        server_id, inner = self.boot_nat()
        gateway = inner['fixed_ips'][0]['ip_address']
        client = traffic.Machine(
            self.os_admin, self.make_port('left'), self.addCleanup,
            ('24', '--gateway', gateway))
        server = traffic.Machine(
            self.os_admin, self.make_port('right'), self.addCleanup)
        server.start('python3', '-c', SERVER)
        waiters.until(
            lambda: client.run(
                'python3', '-c', 'import socket, sys; socket.create_connection'
                f'((sys.argv[1], {PORT}), 1)', server.ip, check=False),
            lambda done: done.returncode == 0, 'the server answers')
        talk = client.start('python3', '-c', CLIENT, server.ip)
        talk.stdout.readline()
        began_s = time.monotonic()
        first = self.host_of(server_id)
        self.use('2.30')
        for name in (self.second_name(), first):
            before = int(self.tenant.clickos.read_handler(server_id,
                                                          'passed.count'))
            self.migrate(server_id, name)
            # How long the silence was is measured on hosts without a cloud.
            moved_s = time.monotonic() - began_s
            while int(talk.stdout.readline()) < moved_s + 1:
                pass
            self.assertGreater(int(self.tenant.clickos.read_handler(
                server_id, 'passed.count')), before)
        self.assertIsNone(talk.poll())
        ports = self.os_primary.ports_client.list_ports(
            device_id=server_id)['ports']
        for port in ports:
            waiters.until(
                lambda port=port: self.os_primary.ports_client.show_port(
                    port['id'])['port']['status'],
                lambda seen: seen == 'ACTIVE', 'the port is active', 30)
        waiters.until(lambda: self.second.leftovers(server_id),
                      lambda seen: seen == [], 'nothing is left')

    def use(self, microversion):
        """Use a version of Nova's API."""
        self.useFixture(api_microversion_fixture.APIMicroversionFixture(
            compute_microversion=microversion))
