# SPDX-License-Identifier: Apache-2.0
"""Many guests at once: each forwards after the last one has booted."""

import os

from tests.xen import base
from tests.xen import test_netback

_GUESTS = int(os.environ.get('CLICKOS_LAB_GUESTS', '40'))
_FIRST = 10
_NAMES = 'm'


class ManyTest(base.XenTest):

    def test_each_answers_after_the_last_has_booted(self):
        self.dom0.check('lab-net bridge br0; '
                        'lab-net endpoint br0 near 10.1.0.1/24')
        numbers = range(_FIRST, _FIRST + _GUESTS)
        for number in numbers:
            made, text = test_netback.answerer(
                self.dom0, f'{_NAMES}{number}', 'pv', 'br0', number)
            self.assertEqual(('Running', ''), made.install(text))
        listed = self.dom0.check(f'xl list | grep -c "^{_NAMES}[0-9]"')
        self.assertEqual(_GUESTS, int(listed))
        script = ''.join(f'ip netns exec near ping -q -c 1 -W 10 10.1.0.{n} '
                         f'>/dev/null || echo {n}; ' for n in numbers)
        self.assertEqual('', self.dom0.check(script, timeout_s=120))
