# SPDX-License-Identifier: Apache-2.0
"""Starts of guests after a reboot of the host."""

import unittest

from nova import exception as nova_exception

from nova_clickos import boot
from nova_clickos import exception
from tests.unit.nova_clickos import base

_AWAY = (exception.ServiceUnavailable(reason='clickos-api answered 503'),
         exception.CosmosdUnavailable(reason='no socket'),
         exception.DaemonUnavailable(reason='valed does not answer'),
         nova_exception.GlanceConnectionFailed(server='g', reason='refused'))


class PatienceTest(unittest.TestCase):

    def setUp(self):
        self.now_s, self.starts = 0, 0
        self.patience = boot.Patience(lambda: self.now_s, self.sleep)

    def sleep(self, seconds):
        self.now_s += seconds

    def repeat(self, *outcomes):
        """Start a guest with these outcomes; the last one remains."""
        left = list(outcomes)

        def start():
            self.starts += 1
            outcome = left.pop(0) if len(left) > 1 else left[0]
            if isinstance(outcome, Exception):
                raise outcome
            return outcome
        return self.patience.repeat(start, base.instance())

    def test_services_that_boot_later(self):
        self.assertEqual('started', self.repeat(*_AWAY, 'started'))
        self.assertEqual(len(_AWAY) + 1, self.starts)

    def test_another_reason_is_not_repeated(self):
        for error in (exception.GuestNotStarted(reason='fw:1: syntax'),
                      exception.HostCannotStart(reason='no memory')):
            self.starts = 0
            self.assertRaises(type(error), self.repeat, error)
            self.assertEqual(1, self.starts)

    def test_all_guests_share_the_time(self):
        limit_s = boot.CONF.clickos.resume_timeout
        self.assertRaises(exception.ServiceUnavailable, self.repeat, _AWAY[0])
        self.assertEqual(limit_s, self.now_s)
        self.starts = 0
        self.assertRaises(exception.ServiceUnavailable, self.repeat, _AWAY[0])
        self.assertEqual((1, limit_s), (self.starts, self.now_s))

    def test_a_guest_without_its_state_leaves_time_to_others(self):
        own = exception.StateUnavailable(reason='no-secret-key')
        limit_s = boot.CONF.clickos.resume_timeout
        self.assertRaises(exception.StateUnavailable, self.repeat, own)
        self.assertEqual(30, self.now_s)
        self.assertEqual('started', self.repeat(own, _AWAY[0], 'started'))
        for _guest in range(100):
            self.assertRaises(exception.StateUnavailable, self.repeat, own)
        self.assertLessEqual(self.now_s, limit_s / 2 + 2)
        self.assertRaises(exception.ServiceUnavailable, self.repeat, _AWAY[0])
        self.assertEqual(limit_s, self.now_s)
