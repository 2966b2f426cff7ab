# SPDX-License-Identifier: Apache-2.0
"""People and daemons act on a guest's host; Nova shows it, and it recovers."""

from tempest.lib import decorators

from clickos_tempest_plugin.common import waiters
from clickos_tempest_plugin.tests import base
from clickos_tempest_plugin.tests.scenario import case

RULES = ['allow icmp', 'deny all']
#: Nova's power states
NOSTATE, RUNNING, PAUSED = 0, 1, 3


@decorators.serial
class BesideBase(case.FirewallCase):
    """A firewall, and what Nova says about its server."""

    def power_state(self):
        """Return the server's power state in Nova."""
        server = self.tenant.servers.show_server(self.server_id)['server']
        return server['OS-EXT-STS:power_state']

    def await_power(self, wanted):
        """Wait until Nova shows a power state."""
        waiters.until(self.power_state, lambda seen: seen == wanted,
                      f'power state {wanted} of server {self.server_id}')

    def pause_and_unpause(self):
        """Nova shows a guest that a person paused, and can unpause it."""
        self.assertTrue(self.left.can_ping(self.right))
        self.host.hang_guest(self.server_id)
        self.wait_server(('PAUSED',))
        self.assertEqual(PAUSED, self.power_state())
        self.assertTrue(self.left.is_cut_off(self.right))
        self.tenant.servers.unpause_server(self.server_id)
        self.wait_server(('ACTIVE',))
        self.assertEqual(RUNNING, self.power_state())
        self.assertTrue(self.left.can_ping(self.right))
        self.assertEqual(case.OPEN, self.rules())


class BesideTest(BesideBase):

    @decorators.idempotent_id('8b6f7a51-41a7-4be0-8f5c-5d1d2c9e6a01')
    def test_somebody_stops_a_guest(self):
        self.pause_and_unpause()

    @decorators.attr(type='slow')
    @decorators.idempotent_id('8b6f7a51-41a7-4be0-8f5c-5d1d2c9e6a02')
    def test_xenstored_starts_again(self):
        """Guests forward, are unreachable, and then take writes again."""
        ping = self.left.ping(self.right)
        with self.host.outage('xenstored', 'kill', 10):
            self.await_power(NOSTATE)
        self.await_power(RUNNING)
        self.clickos.write_handler(self.server_id, 'fw.config',
                                   ', '.join(RULES))
        self.assertEqual(RULES, self.rules())
        self.assertEqual((), ping.result().lost)
        self.wait_server(('ACTIVE',))


class BesideOnXenTest(base.OnXenMixin, BesideBase):

    @decorators.idempotent_id('8b6f7a51-41a7-4be0-8f5c-5d1d2c9e6a04')
    def test_somebody_pauses_a_domain(self):
        self.pause_and_unpause()
