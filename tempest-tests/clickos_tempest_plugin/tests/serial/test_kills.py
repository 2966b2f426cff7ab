# SPDX-License-Identifier: Apache-2.0
"""Daemons of a compute host killed while a server starts or ends."""

import datetime
import time

from tempest.lib.common.utils import data_utils
from tempest.lib import decorators
from tempest.lib import exceptions

from clickos_tempest_plugin.common import tenant
from clickos_tempest_plugin.common import waiters
from clickos_tempest_plugin.tests import base

ALONE = 'Idle -> named :: Counter -> Discard;'
_RECOVERY_S = 180


@decorators.serial
class KillsBase(base.OnHostTest):

    #: moments of a kill, after the request, in seconds
    moments_s = tuple(0.15 * number for number in range(10))
    #: as Nova writes times
    _killed_at = ''

    def create(self):
        """Ask for a server, when the hosts are back from the last kill."""
        waiters.until(self.unusable_hosts, lambda seen: seen == [],
                      'all hosts up and enabled', _RECOVERY_S)
        port = self.tenant.make_port('left', self.addCleanup)
        return port['id'], self.tenant.create_server(
            self.addCleanup, name=data_utils.rand_name('killed'),
            user_data=tenant.encoded(ALONE), networks=[{'port': port['id']}])

    def unusable_hosts(self):
        """Return the hosts that get no servers, or have not reported since.

        A nova-compute that has just died counts as up for a while. A server
        for it is in ERROR when it comes back.
        """
        services = self.os_admin.services_client.list_services(
            binary='nova-compute')['services']
        return [each['host'] for each in services
                if (each['state'], each['status']) != ('up', 'enabled')
                or (each['updated_at'] or '') < self._killed_at]

    def restart(self, service):
        """Kill a service of the host and start it again."""
        self.host.restart(service)
        self._killed_at = datetime.datetime.now(
            datetime.timezone.utc).isoformat(timespec='microseconds')[:-6]

    def settled(self, server_id):
        """Wait until Nova says what became of a server."""
        return waiters.until(
            lambda: self.tenant.servers.show_server(server_id)['server'],
            lambda seen: seen['status'] in ('ACTIVE', 'ERROR')
            and not seen['OS-EXT-STS:task_state'],
            f'server {server_id} ACTIVE or ERROR', _RECOVERY_S)['status']

    def delete(self, server_id):
        """Delete a server as its user would, again if it fails."""
        deadline_s = time.monotonic() + _RECOVERY_S
        while time.monotonic() < deadline_s:
            try:
                self.tenant.servers.delete_server(server_id)
                waiters.gone(
                    lambda: self.tenant.servers.show_server(server_id),
                    f'server {server_id}')
            except exceptions.NotFound:
                return
            except exceptions.TimeoutException:
                continue
            return
        self.fail(f'server {server_id} is not gone')

    def kill_in_spawn(self, service, moment_s):
        """A server in ERROR has no guest; one that is ACTIVE has one."""
        port_id, server_id = self.create()
        time.sleep(moment_s)
        self.restart(service)
        status = self.settled(server_id)
        waiters.until(lambda: bool(self.host.leftovers(server_id)),
                      lambda seen: seen == (status == 'ACTIVE'),
                      f'{status}: remains on the host')
        self.delete(server_id)
        self.assertNothing(server_id)
        if status == 'ACTIVE':
            self.assertUnbound(port_id)
        # Else Nova may have died before it noted that the port is the
        # user's; then it deletes the port with the server.

    def kill_in_destroy(self, service, moment_s):
        port_id, server_id = self.create()
        self.assertEqual('ACTIVE', self.settled(server_id))
        self.tenant.servers.delete_server(server_id)
        time.sleep(moment_s)
        self.restart(service)
        self.delete(server_id)
        self.assertNothing(server_id)
        self.assertUnbound(port_id)

    def assertNothing(self, server_id):
        """Nova, Placement, Neutron and the host have nothing of a server."""
        waiters.until(lambda: self.host.leftovers(server_id),
                      lambda seen: seen == [], 'nothing left on the host')
        found = self.os_admin.placement_client.list_allocations(server_id)
        self.assertEqual({}, found['allocations'])
        self.assertEqual([], self.tenant.clients.ports_client.list_ports(
            device_id=server_id)['ports'])

    def assertUnbound(self, port_id):
        """The port that the user made is there yet, without a server."""
        port = self.tenant.clients.ports_client.show_port(port_id)['port']
        self.assertEqual('', port['device_id'])


class KillsTest(KillsBase):
    """One kill that `make test` has time for."""

    @decorators.idempotent_id('7c2b7f52-0f4c-4f5e-a4ba-0d9d3c7f3a01')
    def test_nova_compute_dies_in_a_spawn(self):
        self.kill_in_spawn('nova-compute', 0.6)


class OutagesOfDaemonsTest(KillsBase):
    """Each daemon at ten moments; `make soak PARTS=faults` only."""

    limit_s = 3600


def _add(service, what):
    def kill_at_each_moment(test):
        for moment_s in test.moments_s:
            with test.subTest(moment_s=moment_s):
                getattr(test, f'kill_in_{what}')(service, moment_s)
    base.add_slow(OutagesOfDaemonsTest, '7c2b7f52-0f4c-4f5e-a4bb',
                  f'test_{service.replace("-", "_")}_dies_in_{what}',
                  kill_at_each_moment)


for _service in ('nova-compute', 'clickos-agent', 'cosmosd', 'valed'):
    for _what in ('spawn', 'destroy'):
        _add(_service, _what)
