# SPDX-License-Identifier: Apache-2.0
"""Which releases may work together."""

import unittest

from clickos_client import release


class ReleaseTest(unittest.TestCase):

    def test_releases_that_follow_each_other_are_neighbors(self):
        for one, other in (('0.2.0', '0.2.7'), ('0.2.0', '0.3.0'),
                           ('0.3.0', '1.0.0'), ('0.3.4.dev2', '1.0.1'),
                           ('1.0.0', '1.1.0+5'), ('unknown', 'unknown')):
            for pair in ((one, other), (other, one)):
                self.assertTrue(release.are_neighbors(*pair), pair)

    def test_others_are_not(self):
        for one, other in (('0.1.0', '0.3.0'), ('0.2.0', '1.0.0'),
                           ('0.3.0', '1.1.0'), ('0.3.0', '2.0.0'),
                           ('1.0.0', '2.0.0'), ('unknown', '1.0.0'),
                           ('', '0.3.0'), ('9' * 5000, '1.0.0')):
            for pair in ((one, other), (other, one)):
                self.assertFalse(release.are_neighbors(*pair), pair)

    def test_a_host_may_report_anything(self):
        for reported in (None, 3, ['1.0.0'], {}, '.', '\u00b2.1'):
            self.assertFalse(release.are_neighbors(reported, '1.0.0'),
                             reported)


if __name__ == '__main__':
    unittest.main()
