# SPDX-License-Identifier: Apache-2.0
"""A guest's ports follow Neutron while the guest runs."""

import contextlib
import functools
import time

from tempest.lib.common.utils import data_utils
from tempest.lib.common.utils import test_utils
from tempest.lib import decorators
from tempest.lib import exceptions

from clickos_tempest_plugin.common import bounds
from clickos_tempest_plugin.common import waiters
from clickos_tempest_plugin.tests.scenario import ports

#: What Neutron lets a member send to hide whose port it is.
THEFTS = (
    {'device_id': '', 'device_owner': ''},
    {'device_id': ''},
    {'device_owner': 'network:dhcp'},
    {'device_id': 'ffffffff-2222-4333-8444-555555555555'},
)
#: Of frames of 47 bytes; the switch's buckets hold 65,600 bytes.
FLOOD_PER_S = 4000
LIMIT_KBPS = 200
LIMITED_PER_S = LIMIT_KBPS * 1000 // (8 * 47)
#: Of the network, and none of its pool.
MOVED_IP = '10.10.1.77'


class PortsTest(ports.PortsCase):

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

    @decorators.attr(type='slow')
    @decorators.idempotent_id('4e8f1d7b-0c0e-4a7b-9f1e-0a7c5b0d2e22')
    def test_a_disabled_port_is_silent_until_it_is_enabled(self):
        self.update(self.ports_client, admin_state_up=False)
        self.assertCutOff(*self.servers)
        self.tenant.servers.reboot_server(self.servers[0], type='HARD')
        waiters.server(self.tenant.servers, self.servers[0])
        self.assertEqual(0, self.heard(self.servers[0]))
        self.assertCutOff(*self.servers)
        self.update(self.ports_client, admin_state_up=True)
        for server_id in self.servers:
            self.assertHears(server_id)

    def silent_after_s(self, server_id, change):
        """Return how long after a change the last packet arrived."""
        change()
        changed_s = last_s = time.monotonic()
        seen, heard = self.heard(server_id), None
        while time.monotonic() < last_s + ports.SILENCE_S:
            asked_s, heard = time.monotonic(), self.heard(server_id)
            if heard != seen:
                seen, last_s = heard, asked_s
        return last_s - changed_s

    def assertStatus(self, status, timeout_s=30):
        """Check that Neutron soon gives the first port a status."""
        waiters.until(
            lambda: self.ports_client.show_port(
                self.ports[0]['id'])['port']['status'],
            lambda seen: seen == status, f'the port is {status}', timeout_s)

    @decorators.idempotent_id('4e8f1d7b-0c0e-4a7b-9f1e-0a7c5b0d2e2b')
    def test_a_port_is_active_while_the_switch_forwards(self):
        for port in self.ports:
            shown = self.ports_client.show_port(port['id'])['port']
            self.assertEqual('ACTIVE', shown['status'])
        took_s = self.silent_after_s(
            self.servers[1], lambda: self.update(
                self.ports_client, admin_state_up=False))
        bounds.hold('max_disabled_port_received_seconds', took_s)
        self.assertStatus('DOWN')
        self.update(self.ports_client, admin_state_up=True)
        self.assertStatus('ACTIVE')
        servers = self.tenant.servers
        servers.stop_server(self.servers[0])
        waiters.server(servers, self.servers[0], 'SHUTOFF')
        self.assertStatus('DOWN')
        servers.start_server(self.servers[0])
        waiters.server(servers, self.servers[0])
        self.assertStatus('ACTIVE')

    @decorators.attr(type='slow')
    @decorators.idempotent_id('4e8f1d7b-0c0e-4a7b-9f1e-0a7c5b0d2e2a')
    def test_the_addresses_of_a_running_guest_change(self):
        address, = self.ports[0]['fixed_ips']
        self.update(self.ports_client, fixed_ips=[
            {'subnet_id': address['subnet_id'], 'ip_address': MOVED_IP}])
        self.assertCutOff(self.servers[1])
        self.update(self.ports_client, allowed_address_pairs=[
            {'ip_address': address['ip_address']}])
        self.assertHears(self.servers[1])

    def make_group(self):
        """Make a security group without any rule."""
        groups = self.os_primary.security_groups_client
        group = groups.create_security_group(
            name=data_utils.rand_name('closed'))['security_group']
        self.addCleanup(test_utils.call_and_ignore_notfound_exc,
                        groups.delete_security_group, group['id'])
        for rule in group['security_group_rules']:
            self.rules.delete_security_group_rule(rule['id'])
        return group['id']

    @decorators.attr(type='gate')
    @decorators.idempotent_id('4e8f1d7b-0c0e-4a7b-9f1e-0a7c5b0d2e24')
    def test_security_groups_of_a_running_guest(self):
        self.rules = self.os_primary.security_group_rules_client
        group_id = self.make_group()
        self.addCleanup(self.update, self.ports_client, security_groups=[])
        self.update(self.ports_client, security_groups=[group_id])
        self.assertCutOff(*self.servers)
        port, = self.tenant.clickos.list_ports(self.servers[0])
        self.assertEqual(self.ports[0]['id'], port['id'])
        self.assertGreater(port['counters']['dropped_filter'], 0)
        peer = self.ports[1]['fixed_ips'][0]['ip_address']
        self.rules.create_security_group_rule(
            security_group_id=group_id, direction='ingress',
            ethertype='IPv4', protocol='udp', port_range_min=7,
            port_range_max=7, remote_ip_prefix=f'{peer}/32')
        for server_id in self.servers:
            self.assertHears(server_id)

    def heard_per_s(self, server_id):
        """Return how many packets a second a guest has from its peer."""
        begin_s, before = time.monotonic(), self.heard(server_id)
        time.sleep(ports.SILENCE_S)
        count = self.heard(server_id) - before
        return count / (time.monotonic() - begin_s)

    def make_limit(self):
        """Make a QoS policy that limits what a port sends."""
        policies = self.os_admin.qos_client
        policy = policies.create_qos_policy(
            name=data_utils.rand_name('slow'),
            project_id=self.ports[0]['project_id'])['policy']
        self.addCleanup(policies.delete_qos_policy, policy['id'])
        rules = self.os_admin.qos_limit_bw_client
        rule = rules.create_limit_bandwidth_rule(
            policy['id'], max_kbps=LIMIT_KBPS, max_burst_kbps=LIMIT_KBPS,
            direction='egress')['bandwidth_limit_rule']
        return policy['id'], rule['id'], rules

    @decorators.attr(type='slow')
    @decorators.idempotent_id('4e8f1d7b-0c0e-4a7b-9f1e-0a7c5b0d2e25')
    def test_a_qos_policy_of_a_running_guest(self):
        policy_id, rule_id, rules = self.make_limit()
        self.tenant.clickos.write_handler(self.servers[0], 'source.rate',
                                          str(FLOOD_PER_S))
        heard_per_s = functools.partial(self.heard_per_s, self.servers[1])
        fast = lambda rate: rate > 2 * LIMITED_PER_S  # noqa: E731
        waiters.until(heard_per_s, fast, 'the flood arrives', 30)
        self.update(self.admin_ports, qos_policy_id=policy_id)
        self.addCleanup(self.update, self.admin_ports, qos_policy_id=None)
        # The first window may have a part of the burst.
        waiters.until(heard_per_s, lambda rate: rate < 2 * LIMITED_PER_S,
                      'the policy limits', 30)
        bounds.hold('max_qos_rate_ratio', heard_per_s() / LIMITED_PER_S)
        rules.update_limit_bandwidth_rule(
            policy_id, rule_id, max_kbps=100 * LIMIT_KBPS)
        waiters.until(heard_per_s, fast, 'the policy limits less', 30)
