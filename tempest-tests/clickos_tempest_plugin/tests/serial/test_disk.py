# SPDX-License-Identifier: Apache-2.0
"""A host's disk takes no write while a firewall works."""

from tempest.lib import decorators
from tempest.lib import exceptions

from clickos_tempest_plugin.common import waiters
from clickos_tempest_plugin.tests.scenario import case

REASON = 'Read-only file system'
RULES = 'allow icmp, deny all'
#: Time for a reboot that fails, and for the service to follow twice.
AWAY_S = 45


@decorators.serial
class DiskTest(case.SharedFirewallCase):

    @decorators.idempotent_id('4e8f1d7b-0c0e-4a7b-9f1e-0a7c5b0d2e91')
    def test_a_disk_without_room_costs_no_guest(self):
        before = self.rules()
        ping = self.left.ping(self.right)
        with self.host.read_only(AWAY_S):
            self.service('disabled', REASON)
            self.assertRaises(
                exceptions.UnexpectedResponseCode, self.clickos.write_handler,
                self.server_id, 'fw.config', RULES)
            change = self.clickos.call(
                'GET', f'v1/servers/{self.server_id}/changes', 200)[1][
                    'changes'][0]
            self.assertEqual('refused', change['status'], change)
            self.assertIn(REASON, change['error']['message'])
            self.tenant.servers.reboot_server(self.server_id, type='HARD')
            waiters.until(self.last_action, lambda seen: seen == (
                'reboot', 'Error'), 'the reboot fails')
            self.wait_server(('ACTIVE',))
            self.assertEqual(before, self.rules())
        self.service('enabled', None)
        self.assertEqual((), ping.result().lost)
        self.clickos.write_handler(self.server_id, 'fw.config', RULES)
        self.tenant.servers.reboot_server(self.server_id, type='HARD')
        waiters.server(self.tenant.servers, self.server_id)
        self.assertEqual(RULES.split(', '), self.rules())

    def service(self, status, reason):
        """Wait until Nova shows the host's service so, for this reason."""
        name = self.os_admin.servers_client.show_server(
            self.server_id)['server']['OS-EXT-SRV-ATTR:host']
        services = self.os_admin.services_client

        def look():
            (found,) = services.list_services(
                host=name, binary='nova-compute')['services']
            return found['status'], found['disabled_reason']

        waiters.until(look, lambda seen: seen[0] == status and (
            seen[1] is None if reason is None else reason in (seen[1] or '')),
            f'{name} {status}')

    def last_action(self):
        """Return the name of the server's last action, and its message."""
        action = self.tenant.servers.list_instance_actions(self.server_id)[
            'instanceActions'][0]
        return action['action'], action['message']
