# SPDX-License-Identifier: Apache-2.0
"""Many guests at once: each forwards after the last one has booted."""

from tests.xen import base
from tests.xen import test_netback

_FIRST = 10


class ManyTest(base.XenTest):

    guests = 40

    def test_each_answers_after_the_last_has_booted(self):
        self.dom0.check('lab-net bridge br0; '
                        'lab-net endpoint br0 near 10.1.0.1/16')
        numbers = range(_FIRST, _FIRST + self.guests)
        for number in numbers:
            made, text = test_netback.answerer(
                self.dom0, f'm{number}', 'pv', 'br0', number)
            self.assertEqual(('Running', ''), made.install(text))
        listed = self.dom0.check('xl list | grep -c "^m[0-9]"')
        self.assertEqual(self.guests, int(listed))
        silent = [number for number in numbers if not self._answers(number)]
        self.assertEqual([], silent)

    def _answers(self, number):
        address = test_netback.address_of(number)
        return self.dom0.run(f'ip netns exec near ping -q -c 1 -W 10 '
                             f'{address}').status == 0
