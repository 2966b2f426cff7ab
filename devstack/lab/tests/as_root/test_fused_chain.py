# SPDX-License-Identifier: Apache-2.0
"""TCP connections through a chain that fuses and unfuses, no OpenStack.

::

    client === valed === server
               | | |
             fw ids fused    two hops with state, and the guest for both
"""

from clickos_client import combiner
from clickos_client import flows
from clickos_lab import bounds
from clickos_lab.vnf import programs

from tests.as_root import test_scaled_hop

HOPS = ('fw', 'ids')


class FusedChainTest(test_scaled_hop.HopTestCase):
    """Guests 0 and 1 are the hops, guest 2 is both."""

    def config(self, n):
        """Return the configuration of a hop, or the fused one."""
        if n < len(HOPS):
            return test_scaled_hop.HOP
        return combiner.fuse(programs.path('click-combine'), [
            combiner.Hop(name, test_scaled_hop.HOP, 0, 1) for name in HOPS])

    def steer(self, *guests):
        """Give the chain these guests as hops."""
        self.host.switch(
            'chain', 'set', 'vale0:web', '--segment=1',
            '--match=from=client,protocol=6',
            *(f'--hop=h{n}-in:h{n}-out,transparent' for n in guests))

    def give_hops(self, is_fused):
        """Give the flows of all hops to where they are next."""
        fused = self.guest(2)
        return sum(flows.transfer(*((flows.Part(fused, f'{name}/'),
                                     [self.guest(n)]) if is_fused else
                                    (self.guest(n),
                                     [flows.Part(fused, f'{name}/')])))
                   for n, name in enumerate(HOPS))

    def guest(self, n):
        """Return a guest as clickos_client.flows takes it."""
        return test_scaled_hop.Guest(self.host.client, self.guests[n])

    def move(self, is_fused, *guests):
        """Fuse or unfuse; return the flows that were given first."""
        given = self.give_hops(is_fused)
        self.steer(*guests)
        self.give_hops(is_fused)
        return given

    def read(self, n, name):
        """Read a number from a guest."""
        return int(self.host.client.call('handler-read', uuid=self.guests[n],
                                         name=name)['value'])

    def test_no_connection_is_lost_both_ways(self):
        count = test_scaled_hop.CONNECTIONS
        self.steer(0, 1)
        clients = [self.connect()]
        self.assertEqual(2 * count, self.move(False, 2))
        self.assertEqual(0, self.lost(clients[0]))
        clients.append(self.connect())
        # Each hop counts under its own name, and the hops' guests rest.
        for name in HOPS:
            self.assertEqual(count, self.read(2, f'{name}/opened.count'))
        for n in (0, 1):
            self.assertEqual(count, self.read(n, 'opened.count'))
        self.assertEqual(4 * count, self.move(True, 0, 1))
        self.assertEqual([0, 0], list(map(self.lost, clients)))
        # The hops' guests open connections again.
        clients.append(self.connect())
        bounds.hold('max_fusion_lost_connections',
                    sum(map(self.lost, clients)))
        for n in (0, 1):
            self.assertEqual(2 * count, self.read(n, 'opened.count'))
            self.assertEqual(0, self.read(n, 'flows.merge_lost'))
