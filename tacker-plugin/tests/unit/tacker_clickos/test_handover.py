# SPDX-License-Identifier: Apache-2.0
"""How long a hand-over waits for guests that hang, lie or do not answer."""

from unittest import mock

from keystoneauth1 import noauth
from oslo_config import cfg

from tacker_clickos import clickos_api
from tacker_clickos import handover
from tacker_clickos import outages
from tests.unit.tacker_clickos import base
from tests.unit.tacker_clickos import test_outages

OWN, OTHER = 'own', 'other'


def fault(status, code):
    return status, {'error': {'code': code, 'message': 'no answer'}}


class RequestsTest(base.TestCase):

    def hand_over(self, *answers):
        """Hand over by a clickos-api with these answers; return methods."""
        cfg.CONF.set_override('outage_timeout', 1, 'clickos')
        self.addCleanup(cfg.CONF.clear_override, 'outage_timeout', 'clickos')
        self.patch(clickos_api.time, 'sleep',
                   side_effect=AssertionError('a request is repeated'))
        service = test_outages.Service(*answers)
        connection = mock.Mock()
        connection.session = outages.Session(auth=noauth.NoAuth(
            endpoint='http://127.0.0.1:%d' % service.port))
        connection.config.get_region_name.return_value = None
        try:
            handover.hand_over(clickos_api.Client(connection), OWN, OTHER)
        finally:
            methods = service.stop()
        return methods

    def test_a_guest_that_hangs_is_asked_once(self):
        self.assertEqual(['GET'], self.hand_over(
            *[fault(504, 'timeout')] * 20))

    def test_a_host_that_is_away_is_asked_once(self):
        self.assertEqual(['GET', 'GET'], self.hand_over(
            (200, {'value': 'active'}), *[fault(503, 'unavailable')] * 20))

    def test_a_guest_that_dies_before_it_resigns_is_told_once(self):
        self.assertEqual(['GET'] * 4 + ['POST'], self.hand_over(
            *[(200, {'value': value}) for value in
              ('active', 'backup', 'off', 'off')],
            *[fault(503, 'unavailable')] * 20))


class BoundTest(base.TestCase):

    def test_guests_that_lie_delay_a_heal_for_one_time(self):
        clock = self.patch(handover, 'time')
        clock.now_s = 0

        def sleep(seconds):
            clock.now_s += seconds
        clock.sleep, clock.monotonic = sleep, lambda: clock.now_s
        api = mock.create_autospec(clickos_api.Client, instance=True)
        api.read.side_effect = lambda server_id, handler: {
            'vrrp.state': 'active' if server_id == OWN else 'backup',
            'vrrp.copies': 'connected true\nwaiting 7\n'}[handler]
        handover.hand_over(api, OWN, OTHER)
        self.assertEqual(1, api.write.call_count)
        self.assertLess(clock.now_s, handover._PATIENCE_S + 1)


class CopiedTest(base.TestCase):

    def test_the_other_guest_has_all_flows(self):
        done = 'connected true\nwaiting 0\nconnection 1 2'
        self.assertTrue(handover._is_copied('off', 'off'))
        self.assertTrue(handover._is_copied(done, 'connection 2 1'))
        for own, other in (
                (done, 'connection 4 3'), (done, 'connection 1 2'),
                (done, 'off'), (done.replace('0', '1'), 'connection 2 1'),
                (done.replace('true', 'false'), 'connection 2 1'),
                ('connected true\nwaiting 0', '')):
            self.assertFalse(handover._is_copied(own, other), (own, other))
