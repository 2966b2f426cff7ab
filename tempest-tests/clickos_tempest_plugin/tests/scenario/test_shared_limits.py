# SPDX-License-Identifier: Apache-2.0
"""The guests of a VNF share a rate and a quota, however many there are."""

import json
import time

from clickos_client import vnf
from tempest import config
from tempest.lib.common import api_microversion_fixture
from tempest.lib.common.utils import data_utils
from tempest.lib import decorators
from tempest.lib import exceptions

from clickos_tempest_plugin.common import csar
from clickos_tempest_plugin.common import tenant
from clickos_tempest_plugin.common import waiters
from clickos_tempest_plugin.tests import base
from clickos_tempest_plugin.tests.scenario import test_chains

CONF = config.CONF

FLOWS, PACKETS_A_SECOND = 48, 20
#: Bytes of a packet, and of a frame with it.
DATA, FRAME = 400, 442
#: Of what is sent, a share for each of three guests would let all pass.
SENT = FLOWS * PACKETS_A_SECOND * FRAME
RATE = SENT // 3
FAST = 20 * SENT
QUOTA = 3 * 2 ** 20
#: What each guest may have in hand at the end of a quota, in bytes.
IN_HAND = 16384
GUESTS = 3
SECONDS = 10
#: A guest passes a 64th of the quota in a round of a second.
LONG_S = 150
SENDER = """
out :: EtherEncap(0x0800, {mac}, {peer_mac}) -> Queue(2000) -> ToDevice(0);
FromDevice(0) -> Discard;
""" + ' '.join(f"""
s{n} :: RatedSource(DATA "{'x' * DATA}", RATE {PACKETS_A_SECOND})
  -> UDPIPEncap({{ip}}, {1000 + n}, {{peer_ip}}, 7) -> out;
""" for n in range(FLOWS))
RECEIVER = """
FromDevice(0) -> from :: Classifier(6/{peer} 12/0800, -);
from[0] -> heard :: Counter -> Discard;
from[1] -> Discard;
"""


#: Has shares, and no traffic.
IDLE = """
Idle -> Queue -> s :: BandwidthShaper(0) -> Unqueue -> Discard;
Idle -> q :: Quota(0) -> Discard;
"""
LIMITS = [{'name': 'rate', 'kind': 'rate', 'handler': 's.share',
           'total': RATE},
          {'name': 'quota', 'kind': 'quota', 'handler': 'q.share',
           'total': QUOTA}]


class SharedLimitsOfServersTest(base.ClickOSTest):
    """Two servers without a VNF share limits."""

    def setUp(self):
        super().setUp()
        self.useFixture(api_microversion_fixture.APIMicroversionFixture(
            compute_microversion='2.57'))
        self.clickos = self.tenant.clickos
        self.group = data_utils.rand_uuid()
        self.servers = [self.boot() for _ in range(2)]

    def boot(self):
        """Start a guest with a state of its own; return its server."""
        state_id = self.clickos.create_state(IDLE)
        self.addCleanup(self.clickos.delete_state, state_id)
        server_id = self.tenant.create_server(
            self.addCleanup, name=data_utils.rand_name('shared'),
            networks='none', user_data=tenant.encoded(json.dumps(
                {'clickos': 1, 'state': state_id})))
        waiters.server(self.tenant.servers, server_id)
        return server_id

    def shares(self, servers=None):
        """Return the share of the rate that each server has."""
        return [int(self.clickos.read_handler(each, 's.share').split()[0])
                for each in servers or self.servers]

    @decorators.attr(type='gate')
    @decorators.idempotent_id('e105bb67-f332-4f41-9c00-1c5d96f97a3c')
    def test_shares_of_servers(self):
        rate, quota = self.clickos.set_limits(self.group, LIMITS,
                                              self.servers)
        self.assertEqual((RATE, RATE // 2 * 2), (rate['total'],
                                                 rate['shared']))
        self.assertEqual([RATE // 2] * 2, self.shares())
        self.assertEqual(QUOTA // 64 * 2, quota['shared'])
        first, second = self.servers
        self.tenant.servers.reboot_server(first, type='HARD')
        waiters.server(self.tenant.servers, first)
        waiters.until(lambda: self.shares([first])[0],
                      lambda seen: seen > RATE // 4, 'a share after a start')
        self.assertLessEqual(sum(self.shares()), RATE)
        # What the guest before had of the quota counts as used.
        self.assertEqual(QUOTA // 64, self.clickos.limits(
            self.group)[1]['used'])
        self.clickos.set_limits(self.group, LIMITS, [second])
        self.assertEqual([0, RATE], self.shares())
        self.clickos.delete_limits(self.group)
        self.assertRaises(exceptions.NotFound, self.clickos.limits,
                          self.group)


class SharedLimitsTest(test_chains.ScaledHopCase):
    """A sender, three shapers as one hop of a chain, and a receiver."""

    @classmethod
    def skip_checks(cls):
        super().skip_checks()
        if not CONF.clickos.catalog_path:
            raise cls.skipException('[clickos] catalog_path is not set')

    def setUp(self):
        super().setUp()
        self.clickos = self.tenant.clickos
        self.sfc = self.os_primary.sfc.SfcClient()
        self.instantiate(csar.of_catalog('shaper'), additionalParams={
            'clickos_properties': {'to_right': RATE, 'to_left': RATE}})
        self.group = vnf.limits_group(self.vnf_id, 'VDU1')
        ports = [self.tenant.make_port('left', self.addCleanup)
                 for _ in range(2)]
        flow = self.make('flow_classifier', logical_source_port=ports[0]['id'])
        chain = self.make(
            'port_chain', port_pair_groups=[self.make_hop()],
            flow_classifiers=[flow], chain_parameters={'symmetric': True})
        # Flows stay with their guest, so all guests are there first.
        for _ in range(GUESTS - 1):
            self.scale('SCALE_OUT')
            self.addCleanup(self.shrink)
        own, peer = ports
        self.receiver = self.tenant.boot(
            data_utils.rand_name('receiver'), [peer], RECEIVER.format(
                peer=own['mac_address'].replace(':', '')), self.addCleanup)
        self.sender = self.tenant.boot(
            data_utils.rand_name('sender'), [own], SENDER.format(
                ip=own['fixed_ips'][0]['ip_address'], mac=own['mac_address'],
                peer_ip=peer['fixed_ips'][0]['ip_address'],
                peer_mac=peer['mac_address']), self.addCleanup)
        # A chain is in force where its sender is.
        self.assertHops(chain, 1)

    def shrink(self):
        """Remove a guest, unless it is the last."""
        if len(self.guests()) > 1:
            self.scale('SCALE_IN')

    def limit(self, name):
        """Return what clickos-api shows of a limit."""
        return next(each for each in self.clickos.limits(self.group)
                    if each['name'] == name)

    def heard(self):
        """Return the bytes that have arrived."""
        return int(self.clickos.read_handler(self.receiver,
                                             'heard.byte_count'))

    def share_of(self, server_id):
        """Return the share of the rate and the bytes that a guest passed."""
        return [int(each) for each in self.clickos.read_handler(
            server_id, 'to_right.share').split()]

    def set(self, **properties):
        """Update properties of the VNF."""
        self.tenant.tacker.update_vnf(self.vnf_id, metadata={
            'clickos_properties': properties})
        for name, value in properties.items():
            waiters.until(lambda name=name: self.limit(name)['total'],
                          lambda seen, value=value: seen == value,
                          f'{name} is {value}')

    @decorators.attr(type='slow')
    @decorators.idempotent_id('0fe9e368-3a19-4862-ae6a-38fd3f62f0e2')
    def test_guests_share_a_rate(self):
        waiters.until(
            lambda: [self.share_of(each)[1] for each in self.guests()],
            lambda seen: len(seen) == GUESTS and min(seen) > 0,
            'packets at each guest')
        time.sleep(3)    # two rounds, and a second's worth that had waited
        began, first = time.monotonic(), self.heard()
        time.sleep(SECONDS)
        last, ended = self.heard(), time.monotonic()
        passed = last - first
        self.assertLessEqual(passed, RATE * (ended - began + 1)
                             + GUESTS * FRAME)
        self.assertGreater(passed, 0.8 * RATE * SECONDS)
        shares = [self.share_of(each)[0] for each in self.guests()]
        self.assertGreater(min(shares), 0)
        limit = self.limit('to_right')
        self.assertLessEqual(limit['shared'], RATE)
        self.assertEqual({*self.guests()},
                         {each['server'] for each in limit['guests']})
        # One that leaves returns its share to the others.
        self.scale('SCALE_IN')
        waiters.until(lambda: sum(self.share_of(each)[0]
                                  for each in self.guests()),
                      lambda seen: 0.99 * RATE < seen <= RATE,
                      'two guests have all of the rate')

    @decorators.attr(type='slow')
    @decorators.idempotent_id('47d20938-e4f7-4846-86a4-b96038eb731c')
    def test_guests_share_a_quota_over_heals_and_scaling(self):
        # What passes without a quota counts for none.
        self.let_flow(self.sender, 'false', FLOWS)
        first, _ = waiters.until(
            lambda: [self.heard() for _ in range(2)],
            lambda seen: seen[0] == seen[1], 'no packet is on its way')
        used = self.limit('quota')['used']
        total = used + QUOTA
        self.set(to_right=FAST, quota=total)
        self.let_flow(self.sender, 'true', FLOWS)
        waiters.until(lambda: self.limit('quota')['used'],
                      lambda seen: seen > used + QUOTA // 4, 'a part is used')
        tenant.completed(self.tenant.operate(self.vnf_id, 'heal'))
        self.scale('SCALE_IN')
        limit = self.limit('quota')
        self.assertLessEqual(limit['shared'], total)
        self.assertEqual(GUESTS - 1, len(limit['guests']))
        waiters.until(
            lambda: self.limit('quota')['used'],
            lambda seen: seen > total - GUESTS * IN_HAND, 'all is used',
            LONG_S)
        passed = self.heard() - first
        self.assertLessEqual(passed, QUOTA)
        # Each guest that began again lost what it had in hand.
        self.assertGreater(passed, QUOTA * (1 - GUESTS / 64) * 0.9)
        time.sleep(3)
        self.assertLessEqual(self.heard() - first, passed + GUESTS * IN_HAND)
