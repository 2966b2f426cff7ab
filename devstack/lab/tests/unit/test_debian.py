# SPDX-License-Identifier: Apache-2.0
"""Which Debian a machine has."""

from clickos_lab import debian
from tests.unit import base


class HereTest(base.TestCase):

    def here(self, text):
        file = self.folder / 'os-release'
        file.write_text(text)
        return debian.here(file).number

    def test_a_release_is_found_by_its_number(self):
        for number in debian.RELEASES:
            self.assertEqual(number, self.here(
                f'ID=debian\nVERSION_ID="{number}"\nVERSION="{number} (x)"\n'))

    def test_another_system_counts_as_the_oldest(self):
        self.assertEqual('12', self.here('ID=ubuntu\nVERSION_ID="24.04"\n'))
        self.assertEqual('12', debian.here(self.folder / 'none').number)
