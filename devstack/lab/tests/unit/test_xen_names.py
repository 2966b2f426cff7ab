# SPDX-License-Identifier: Apache-2.0
"""The names that Xen's packages and folders have in each Debian."""

import unittest
from unittest import mock

from clickos_lab import debian
from clickos_lab import errors
from clickos_lab.xen import packages
from clickos_lab.xen import patched


class NamesTest(unittest.TestCase):

    def names(self, number):
        with mock.patch.object(packages, '_DEBIAN', debian.RELEASES[number]):
            return set(packages._names())

    def test_debian_13_has_libraries_of_64_bit_times(self):
        self.assertIn('libssl3', self.names('12'))
        self.assertIn('libssl3t64', self.names('13'))
        self.assertNotIn('libssl3', self.names('13'))

    def test_each_library_that_is_renamed_is_used(self):
        self.assertLessEqual(set(packages._RENAMED_13), self.names('12'))

    def test_the_patches_need_the_xen_that_they_are_for(self):
        with mock.patch.object(debian, 'here', return_value=(
                debian.RELEASES['13'])):
            self.assertRaisesRegex(errors.LabError, 'for Xen 4.17',
                                   patched.install, None, None)
