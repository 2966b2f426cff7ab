# SPDX-License-Identifier: Apache-2.0
"""Guests that are small, end, break, or are saved."""

from tests.xen import base
from tests.xen import guest
from tests.xen import test_netback

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
        self.wait_for(one.crashed)
        self.assertIn('exception ', one.wait('panic', 'panicked.*'))
        self.assertIn('exception ', one.console())

    def test_shutdown(self):
        for kind in ('pv', 'pvh'):
            with self.subTest(kind=kind):
                name = f'end-{kind}'
                guest.Guest(self.dom0, name, kind).create()
                self.dom0.check(f'xl shutdown -w {name}', timeout_s=60)

    def test_saved_and_restored_in_mid_traffic(self):
        self.dom0.check('lab-net bridge br0; '
                        'lab-net endpoint br0 near 10.1.0.1/24')
        one, text = test_netback.answerer(self.dom0, 'moved', 'pvh', 'br0', 9)
        self.addCleanup(one.destroy)
        self.assertEqual(('Running', ''), one.install(text + _FIVE))
        self.dom0.check(
            'ip netns exec near ping -i 0.2 10.1.0.9 >/run/ping 2>&1 & '
            'echo $! >/run/ping.pid')
        self._replies_grow()
        self.dom0.check('xl save moved /run/moved; xl restore -e /run/moved',
                        timeout_s=300)
        one.domid = int(self.dom0.check('xl domid moved'))
        one.wait('0/state', 'Running 1')
        before = int(one.read_handler('echoes.count'))
        self.assertGreater(before, 0)
        self._replies_grow()
        self.dom0.check('kill $(cat /run/ping.pid)')
        self.assertGreater(int(one.read_handler('echoes.count')), before)
        self.assertEqual('5', one.read_handler('c.count'))
        # A hot swap after the restore still finds queues and counters.
        self.assertEqual(('Running', ''), one.install(
            'Idle -> c :: Counter -> d :: Discard;'))
        self.assertEqual('5', one.read_handler('c.count'))

    def _replies_grow(self):
        """Wait until the ping that runs gets replies."""
        before = self._replies()
        self.wait_for(lambda: self._replies() > before + 3)

    def _replies(self):
        return int(self.dom0.check('grep -c "bytes from" /run/ping || true'))
