# SPDX-License-Identifier: Apache-2.0
"""Installing packages without starting services."""

from unittest import mock

from clickos_lab import apt
from tests.unit import base


class ServicesStayDownTest(base.TestCase):

    def setUp(self):
        super().setUp()
        self.policy = self.folder / 'policy-rc.d'
        patch = mock.patch.object(apt, '_POLICY', self.policy)
        patch.start()
        self.addCleanup(patch.stop)

    def test_removed_afterwards_also_on_failure(self):
        with self.assertRaises(KeyboardInterrupt):
            with apt._services_stay_down():
                self.assertIn('exit 101', self.policy.read_text())
                self.assertTrue(self.policy.stat().st_mode & 0o100)
                raise KeyboardInterrupt
        self.assertFalse(self.policy.exists())

    def test_an_own_policy_stays(self):
        self.policy.write_text('#!/bin/sh\nexit 0\n')
        with apt._services_stay_down():
            pass
        self.assertEqual('#!/bin/sh\nexit 0\n', self.policy.read_text())

    def test_ours_of_a_killed_run_is_removed(self):
        self.policy.write_text(apt._POLICY_TEXT)
        with apt._services_stay_down():
            self.assertTrue(self.policy.exists())
        self.assertFalse(self.policy.exists())


class NotedTest(base.TestCase):

    def test_packages_add_up_over_runs(self):
        self.assertEqual([], apt.noted(self.state))
        apt._note(self.state, ['b', 'a'])
        apt._note(self.state, ['c', 'a'])
        self.assertEqual(['a', 'b', 'c'], apt.noted(self.state))
