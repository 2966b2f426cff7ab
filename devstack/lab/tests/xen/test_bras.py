# SPDX-License-Identifier: Apache-2.0
"""The catalog's BRAS as a guest; pppd and the kernel of dom0 dial it."""

from clickos_client import pings

from clickos_lab.vnf import rendering
from clickos_lab.xen import image
from tests.xen import base
from tests.xen import guest

_AMY, _BOB, _DNS = '10.9.2.100', '10.9.2.101', '10.9.2.53'
_SERVER = '10.9.2.9'
_WANTED = {
    'subscribers': '10.9.2.96/27', 'login': 'ANY', 'dns': _DNS,
    'users': [{'name': 'amy', 'address': _AMY},
              {'name': 'bob', 'address': _BOB}]}
#: Dials from the namespace left; the exit status of pppd goes to a file.
_DIAL = """\
ip netns exec left sh -c 'rm -f /run/{name}.end; (pppd plugin pppoe.so \
nic-eth0 user {name} password {password} noauth noipdefault nodefaultroute \
usepeerdns nodetach maxfail 1 lcp-echo-interval 5 lcp-echo-failure 3 \
linkname {name} ipparam {name} {options} >/run/{name}.log 2>&1 </dev/null; \
echo $? >/run/{name}.end) &' >/dev/null 2>&1
"""
#: pppd(8): the peer refused our name or password; the peer ended the link.
_REFUSED, _ENDED = 19, (5, 15, 16)


@base.slow
class BrasTest(base.XenTest):

    @classmethod
    def add_files(cls, contents):
        image.build_profile(cls.state, image.FULL)
        contents.add(image.folder(cls.state) / image.FULL,
                     f'{image.FOLDER}/{image.FULL}')

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.dom0.check(
            'set -e; modprobe pppoe; lab-net bridge br0; lab-net bridge br1; '
            'lab-net endpoint br0 left 192.0.2.1/24; '
            f'lab-net endpoint br1 right {_SERVER}/24')
        vdu = rendering.vdu('bras')
        interfaces = [rendering.interface(vdu, index, False)
                      for index in range(len(vdu.cps))]
        made = rendering.configuration(vdu, interfaces, _WANTED)
        vifs = ', '.join(f'"bridge=br{n},mac={i.mac}"'
                         for n, i in enumerate(interfaces))
        cls.bras = guest.Guest(
            cls.dom0, 'bras', 'pvh',
            f'vif = [{vifs}]\nkernel = "{image.FOLDER}/{image.FULL}"').create()
        cls.text = made.config
        cls.writes = [*made.writes, ('server.passwords', 'amy one, bob two')]

    def setUp(self):
        super().setUp()
        self.assertEqual(('Running', ''), self.bras.install(self.text))
        for handler, value in self.writes:
            code, answer = self.bras.request(f'write {handler} {value}')
            self.assertEqual(200, code, answer)

    def _dial(self, name, password, options=''):
        self.dom0.check(_DIAL.format(name=name, password=password,
                                     options=options))

    def _up(self, name, address):
        """Wait until pppd's interface has its address; return its log."""
        self.wait_for(lambda: address in self.dom0.check(
            'ip -n left -4 address'), 60)
        return self.dom0.check(f'cat /run/{name}.log')

    def _end(self, name):
        """Wait for the end of pppd; return its status."""
        return int(self.wait_for(lambda: self.dom0.run(
            f'cat /run/{name}.end').out.strip(), 60))

    def _ping(self, source, count=5):
        out = self.dom0.check(
            f'ip -n left route replace {_SERVER} dev $(ip -n left -o -4 '
            f'address | grep -F {source} | cut -d" " -f2); '
            'ip netns exec left ' + ' '.join(pings.command(
                _SERVER, count, 0.2, '-I', source)),
            timeout_s=2 * pings.PATIENCE_S)
        self.assertEqual((), pings.judge(out, count).lost, out)

    def test_pppd_dials_and_has_its_address(self):
        self._dial('amy', 'one', 'refuse-pap')
        log = self._up('amy', _AMY)
        self.assertIn(f'primary   DNS address {_DNS}', log)
        self._ping(_AMY)
        out = self.bras.read_handler('server.sessions').split()
        self.assertEqual(['amy', _AMY], out[1:3])
        self.assertGreaterEqual(int(out[5]), 5)
        # A swap, then an operator's end.
        self.assertEqual(('Running', ''), self.bras.install(self.text))
        self._ping(_AMY)
        code, answer = self.bras.request('write server.disconnect amy')
        self.assertEqual(200, code, answer)
        self.assertIn(self._end('amy'), _ENDED)

    def test_pppd_by_pap_ends_its_session(self):
        self._dial('bob', 'two', 'refuse-chap')
        self._up('bob', _BOB)
        self._ping(_BOB)
        self.dom0.check('kill $(cat /run/ppp-bob.pid | head -n 1)')
        self._end('bob')
        self.wait_for(
            lambda: self.bras.read_handler('server.count') == '0')
        self.assertIn(' terminated', self.bras.read_handler('server.ended'))

    def test_pppd_with_a_wrong_password_is_refused(self):
        for options, how in (('refuse-pap', 'CHAP'), ('refuse-chap', 'PAP')):
            self._dial('amy', 'two', options)
            # The end of the session may come first, and is the status then.
            self.assertIn(self._end('amy'), (_REFUSED, *_ENDED))
            self.assertIn(f'{how} authentication failed',
                          self.dom0.check('cat /run/amy.log'))
        self.assertEqual('2', self.bras.read_handler('server.rejected'))
        self.assertEqual('0', self.bras.read_handler('server.count'))
