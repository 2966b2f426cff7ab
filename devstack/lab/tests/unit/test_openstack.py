# SPDX-License-Identifier: Apache-2.0
"""The lab's release of OpenStack, and data of another one."""

import os
from unittest import mock

from clickos_lab import errors
from clickos_lab import openstack
from tests.unit import base


def _chosen(name):
    return mock.patch.dict(os.environ, CLICKOS_OPENSTACK=name)


class ReleaseTest(base.TestCase):

    def test_each_release_has_pins(self):
        for name in openstack.PINS:
            with _chosen(name):
                self.assertEqual(name, openstack.release())
                self.assertTrue(openstack.requirements().is_file())

    def test_no_word_is_the_default(self):
        with _chosen(''):
            self.assertEqual(openstack.DEFAULT, openstack.release())

    def test_another_is_refused(self):
        with _chosen('2025.2'):
            self.assertRaisesRegex(
                errors.LabError, 'OPENSTACK=2025.2: .*2026.1, 2026.2',
                openstack.release)


class DataTest(base.TestCase):

    def setUp(self):
        super().setUp()
        self.state.data.mkdir()

    def test_data_of_a_later_release_are_refused(self):
        with _chosen('2026.2'):
            openstack.require_readable(self.state)
            openstack.note(self.state)
            openstack.require_readable(self.state)
        with _chosen('2026.1'):
            self.assertRaisesRegex(
                errors.LabError, 'data of OpenStack 2026.2',
                openstack.require_readable, self.state)

    def test_data_of_an_earlier_release_are_read(self):
        with _chosen('2026.1'):
            openstack.note(self.state)
        with _chosen('2026.2'):
            openstack.require_readable(self.state)
