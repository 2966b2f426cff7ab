# SPDX-License-Identifier: Apache-2.0
"""A guest that listens, and guests that talk to it."""

from tempest.lib.common import api_microversion_fixture
from tempest.lib.common.utils import data_utils

from clickos_tempest_plugin.common import waiters
from clickos_tempest_plugin.tests import base

#: Sends 50 packets a second to a peer.
TALKER = '''
source :: RatedSource(DATA "hello", RATE 50)
  -> UDPIPEncap({ip}, 7, {peer_ip}, 7)
  -> EtherEncap(0x0800, {mac}, {peer_mac}) -> Queue -> ToDevice(0);
FromDevice(0) -> Discard;
'''
#: Counts what it hears.
LISTENER = '''
FromDevice(0) -> heard :: Counter -> limit :: CheckLength(1500) -> Discard;
'''


class PairCase(base.ClickOSTest):
    """One listener for all tests of a class."""

    @classmethod
    def resource_setup(cls):
        super().resource_setup()
        cls.servers = cls.tenant.servers
        cls.clickos = cls.tenant.clickos
        cls.port = cls.tenant.make_port('left', cls.addClassResourceCleanup)
        cls.server_id = cls.tenant.boot(
            data_utils.rand_name('listener'), [cls.port], LISTENER,
            cls.addClassResourceCleanup)

    @classmethod
    def boot_talker(cls, cleanup, peer=None, **wanted):
        """Start a guest that talks to the listener; return its id.

        :param peer: a port that it talks to instead
        """
        peer = peer or cls.port
        port = cls.tenant.make_port('left', cleanup)
        text = TALKER.format(
            ip=port['fixed_ips'][0]['ip_address'], mac=port['mac_address'],
            peer_ip=peer['fixed_ips'][0]['ip_address'],
            peer_mac=peer['mac_address'])
        return cls.tenant.boot(data_utils.rand_name('talker'), [port], text,
                               cleanup, **wanted)

    def use(self, microversion):
        """Use a version of Nova's API."""
        self.useFixture(api_microversion_fixture.APIMicroversionFixture(
            compute_microversion=microversion))

    def read(self, handler):
        """Return a value of the listener."""
        return self.clickos.read_handler(self.server_id, handler)

    def heard(self):
        """Return how many packets the listener has."""
        return int(self.read('heard.count'))

    def assertHears(self):
        """Check that packets arrive, soon."""
        before = self.heard()
        waiters.until(self.heard, lambda seen: seen > before,
                      f'{self.server_id} hears')
