# SPDX-License-Identifier: Apache-2.0
"""Guests that are small, end, break, or are saved."""

from tests.xen import base
from tests.xen import guest

_FIVE = 'InfiniteSource(LIMIT 5) -> c :: Counter -> Discard;'


class GuestTest(base.XenTest):

    def _guest(self, name, kind='pvh', options=''):
        one = guest.Guest(self.dom0, name, kind, options).create()
        self.addCleanup(one.destroy)
        return one

    def test_four_mib_are_enough_for_a_router(self):
        for kind in ('pv', 'pvh'):
            with self.subTest(kind=kind):
                one = self._guest(f'small-{kind}', kind, 'memory = 4')
                self.assertEqual(('Running', ''), one.install(_FIVE))
                self.assertEqual('5', one.read_handler('c.count'))

    def test_last_words(self):
        one = self._guest('broken')
        self.dom0.check('xl trigger broken nmi')
        self.assertIn('exception 2', one.wait('panic', 'panicked.*'))
        self.assertIn('exception 2', one.console())
        self.wait_for(lambda: 'c' in self.dom0.check(
            'xl list broken').split()[-2])

    def test_shutdown(self):
        for kind in ('pv', 'pvh'):
            with self.subTest(kind=kind):
                name = f'end-{kind}'
                guest.Guest(self.dom0, name, kind).create()
                self.dom0.check(f'xl shutdown -w {name}', timeout_s=60)

    def test_saved_and_restored_with_routers_and_counters(self):
        one = self._guest('moved')
        self.assertEqual(('Running', ''), one.install(_FIVE))
        self.dom0.check('xl save moved /run/moved; xl restore /run/moved',
                        timeout_s=300)
        one.domid = int(self.dom0.check('xl domid moved'))
        one.wait('0/state', 'Running 1')
        self.assertEqual('5', one.read_handler('c.count'))
        self.assertEqual(('Running', ''), one.install(
            'Idle -> c :: Counter -> d :: Discard;'))
        self.assertEqual('5', one.read_handler('c.count'))
