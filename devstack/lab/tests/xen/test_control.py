# SPDX-License-Identifier: Apache-2.0
"""The control protocol (docs/control-protocol.md), keys written by hand."""

from tests.xen import base
from tests.xen import guest

_COUNT = 'Idle -> c :: Counter -> Discard;'


class StartTests:
    """Tests that run once with PV and once with PVH."""

    kind = None

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.guest = guest.Guest(cls.dom0, f'ctl-{cls.kind}', cls.kind)
        cls.guest.create()

    def setUp(self):
        super().setUp()
        self.dom0.run(f'xenstore-rm {self.guest.path("0/elements")} '
                      f'{self.guest.path("0/control")}')

    def _installed(self, text, **more):
        self.assertEqual(('Running', ''), self.guest.install(text, **more))

    def test_console_and_version(self):
        self.assertIn('clickos', self.guest.console())
        self.assertRegex(self.guest.get('version'),
                         r'^clickos \d\S* protocol 1$')

    def test_a_person_needs_two_keys(self):
        one = guest.Guest(self.dom0, f'two-{self.kind}', self.kind)
        one.create()
        self.addCleanup(one.destroy)
        one.put({'0/config/0': _COUNT, '0/status': 'Running'})
        self.assertEqual('Running 0', one.wait('0/state', 'R.*'))
        one.put({'0/control/read/c/count': '1'})
        self.assertEqual('0', one.wait('0/elements/c/count', '.+'))

    def test_hot_swap_keeps_counters(self):
        self._installed(
            'InfiniteSource(LIMIT 5) -> kept :: Counter -> Discard;')
        self._installed('Idle -> kept :: Counter -> d :: Discard;')
        self.assertEqual('5', self.guest.read_handler('kept.count'))


class PvTest(StartTests, base.XenTest):
    kind = 'pv'


class PvhTest(StartTests, base.XenTest):
    """All the cases: what they try is the same code for both kinds."""

    kind = 'pvh'

    def test_errors_have_line_and_column(self):
        state, error = self.guest.install(
            'a :: Idle;\n  b :: Nonesuch;\na -> b;', name='fw.click', rid=3)
        self.assertEqual('Error', state)
        self.assertRegex(error, r'^fw\.click:2:8: .*Nonesuch')

    def test_a_wrong_argument_is_told(self):
        state, error = self.guest.install(
            'Idle -> CheckLength(long) -> Discard;', rid=3)
        self.assertEqual('Error', state)
        self.assertRegex(error, r'test\.click:1:\d+: .*CheckLength.*long')

    def test_the_old_router_stays_when_the_new_one_does_not_start(self):
        self._installed('InfiniteSource(LIMIT 5) -> c :: Counter -> Discard;',
                        rid=7)
        self.assertEqual('Error', self.guest.install('c -> -> d', rid=7)[0])
        self.assertEqual((200, '5'),
                         self.guest.request('read c.count', rid=7))

    def test_an_empty_configuration_removes_the_router(self):
        self._installed(_COUNT, rid=5)
        self.assertEqual('Halted', self.guest.install('', rid=5)[0])
        self.assertEqual(540, self.guest.request('read c.count', rid=5)[0])

    def test_halted_is_installed_but_does_not_run(self):
        text = 'InfiniteSource(LIMIT 5) -> c :: Counter -> Discard;'
        self.assertEqual(
            'Halted', self.guest.install(text, rid=6, status='Halted')[0])
        self.assertEqual((200, '0'),
                         self.guest.request('read c.count', rid=6))
        self.guest.put({'6/status': 'Running'})
        self.guest.wait('6/state', 'Running .*')
        self.wait_for(lambda: self.guest.request('read c.count', rid=6)
                      == (200, '5'))

    def test_routers_run_side_by_side(self):
        self._installed('InfiniteSource(LIMIT 7) -> c :: Counter -> Discard;',
                        rid=62)
        self._installed('InfiniteSource(LIMIT 8) -> c :: Counter -> Discard;',
                        rid=63)
        self.assertEqual((200, '7'),
                         self.guest.request('read c.count', rid=62))
        self.assertEqual((200, '8'),
                         self.guest.request('read c.count', rid=63))

    def test_a_configuration_in_pieces(self):
        self._installed('// a comment of some length\n' * 600 + _COUNT)
        self.assertIn('c\n', self.guest.read_handler('list'))

    def test_garbage_is_refused(self):
        for text in ('\x01\x02\x7f', '(((((((((', 'a' * 2000, '}{', '\\'):
            with self.subTest(text=text[:10]):
                self.assertEqual('Error', self.guest.install(text, rid=4)[0])
        self._installed(_COUNT, rid=4)

    def test_codes_of_requests(self):
        self._installed('Idle -> c :: Counter -> s :: Strip(14) -> Discard;')
        for code, request in (
                (200, 'read c.count'), (200, 'write c.reset '),
                (200, 'read c.class'), (500, 'nonsense'), (500, ''),
                (510, 'read nope.count'), (511, 'read c.nope'),
                (511, 'write c.nope 1'), (530, 'write c.rate 1'),
                (530, 'read c.reset')):
            with self.subTest(request=request):
                self.assertEqual(code, self.guest.request(request)[0])

    def test_a_batch_is_all_or_nothing(self):
        self._installed('s :: Switch(0); Idle -> s; s[0] -> Discard; '
                        's[1] -> Discard;')
        good = 'writes 1\ns.switch 1\n1\n'
        self.assertEqual(200, self.guest.request(good)[0])
        self.assertEqual('1', self.guest.read_handler('s.switch'))
        bad = 'writes 2\ns.switch 1\n0\ns.nope 1\n0\n'
        self.assertEqual(511, self.guest.request(bad)[0])
        self.assertEqual('1', self.guest.read_handler('s.switch'))

    def test_handlers_are_listed(self):
        self._installed(_COUNT)
        code, data = self.guest.request('handlers')
        self.assertEqual(200, code)
        self.assertIn('c.rate r\n', data + '\n')
        self.assertIn('c.reset w\n', data + '\n')

    def test_a_person_writes_a_handler(self):
        self._installed('s :: Switch(0); Idle -> s; s[0] -> Discard; '
                        's[1] -> Discard;')
        self.guest.put({'0/elements/s/switch': '1'})
        self.wait_for(lambda: self.guest.read_handler('s.switch') == '1')

    def test_a_persons_error_is_told(self):
        self._installed(_COUNT)
        self.guest.put({'0/elements/nope/reset': '1'})
        self.assertRegex(self.guest.wait('0/error', '.*nope.*'),
                         r'^nope\.reset: ')
