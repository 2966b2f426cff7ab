# SPDX-License-Identifier: Apache-2.0
"""The catalog's BRAS and FreeRADIUS, which knows its subscribers.

::

    subscriber [eth0] === [0] click [1] === [eth0] freeradius

Every box is a network namespace, as in :mod:`clickos_lab.vnf.testbed`.
"""

import contextlib
import os
import re
import sys
import unittest

from clickos_lab import apt
from clickos_lab import paths
from clickos_lab.vnf import pppoe_peer
from clickos_lab.vnf import rendering
from clickos_lab.vnf import testbed

_SECRET = 'a long secret of both'
_AMY, _BOB, _DAN = '10.9.2.100', '10.9.2.101', '10.9.2.103'
#: No host has it.
_SILENT = '10.9.2.8'
_VALUES = {'subscribers': '10.9.2.96/27', 'login': 'ANY', 'dns': '10.9.2.53',
           'subscribers6': '2001:db8:9::/56',
           'users': [{'name': 'own', 'address': '10.9.2.120'}]}
_MEGABIT = 125000
_USERS = f'''
amy Cleartext-Password := "one"
    Framed-IP-Address = {_AMY}, Class = 0x676f6c64,
    Framed-IPv6-Prefix = 2001:db8:9:77::/64,
    WISPr-Bandwidth-Max-Down = 8000000, WISPr-Bandwidth-Max-Up = 4000000

bob Cleartext-Password := "two"
    Framed-IP-Address = {_BOB}, Session-Timeout = 3

carl Cleartext-Password := "three"
    Framed-IP-Address = 10.9.3.1

dan Cleartext-Password := "four"
    Framed-IP-Address = {_DAN}
'''
_CONFIG = '''
prefix = /usr
libdir = /usr/lib/freeradius
raddbdir = {folder}
logdir = {folder}
run_dir = {folder}
pidfile = {folder}/pid
max_request_time = 10
cleanup_delay = 5
max_requests = 1024
log {{
    destination = stdout
    auth = yes
}}
security {{
    max_attributes = 200
    reject_delay = 0
    status_server = no
    allow_core_dumps = no
}}
thread pool {{
    start_servers = 1
    max_servers = 2
}}
client bras {{
    ipaddr = {client}
    secret = "{secret}"
    require_message_authenticator = yes
}}
modules {{
    files {{
        usersfile = {folder}/users
    }}
    pap {{
    }}
    chap {{
    }}
    detail {{
        filename = {folder}/detail
    }}
}}
server default {{
    listen {{
        type = auth
        ipaddr = {server}
        port = 1812
    }}
    listen {{
        type = acct
        ipaddr = {server}
        port = 1813
    }}
    authorize {{
        chap
        files
        pap
    }}
    authenticate {{
        Auth-Type PAP {{
            pap
        }}
        Auth-Type CHAP {{
            chap
        }}
    }}
    post-auth {{
        {signs}
        Post-Auth-Type REJECT {{
            {signs}
        }}
    }}
    accounting {{
        detail
    }}
}}
'''
#: Version 3.2.1 signs its answers only if its policy says so.
_SIGNS = 'update reply { Message-Authenticator := 0x00 }'
_ATTRIBUTE = re.compile(r'(?m)^\t([\w-]+) = "?([^"\n]*)')


class _Bench(testbed.VnfTestbed):

    def configuration(self):
        return rendering.configuration(self.vdu, self.interfaces, _VALUES)


class RadiusTest(unittest.TestCase):

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        state = paths.State()
        state.create()
        apt.ensure(state, apt.RADIUS_PACKAGES)

    def setUp(self):
        super().setUp()
        with contextlib.ExitStack() as undo:
            self.vnf = undo.enter_context(_Bench('bras'))
            self.addCleanup(undo.pop_all().close)
        self._serve()
        self.write, self.read = self.vnf.control.write, self.vnf.control.read
        self.write('server.radius_servers', self.server)
        self.write('server.radius_secret', _SECRET)

    def _serve(self):
        """Start FreeRADIUS at right, and wait until it listens."""
        folder, self.server = self.vnf.folder, self.vnf.address('right')
        (folder / 'users').write_text(_USERS)
        (folder / 'dictionary').write_text('')
        (folder / 'radiusd.conf').write_text(_CONFIG.format(
            folder=folder, client=self.vnf.address('vif1'),
            server=self.server, secret=_SECRET, signs=_SIGNS))
        self.vnf.serve('right', 1813, 'freeradius', '-f', '-l', 'stdout',
                       '-n', 'radiusd', '-d', folder, udp=True)

    def _dial(self, name, password, *words):
        return self.vnf.start('left', sys.executable, pppoe_peer.__file__,
                              f'{name}{os.getpid()}', name, password, *words)

    def _up(self, name, password, address, *words):
        """Dial, and wait for the address."""
        peer = self._dial(name, password, *words)
        line = peer.stdout.readline()
        self.assertIn(f'up {address} ', line, self.read('server.radius'))
        return peer

    def _refused(self, name, password, *words):
        peer = self._dial(name, password, *words)
        self.assertIn('login incorrect', self.vnf.wait(peer))

    def _count(self, word, line=0):
        """Return a count of a server in the handler's lines."""
        words = self.read('server.radius').splitlines()[line].split()
        return int(words[words.index(word) + 1])

    def _records(self, status, number=1):
        """Wait for records with a status; return their attributes."""
        detail = self.vnf.folder / 'detail'

        def found():
            text = detail.read_text() if detail.exists() else ''
            return [values for values in (
                dict(_ATTRIBUTE.findall(record))
                for record in text.split('\n\n'))
                if values.get('Acct-Status-Type') == status]
        self.vnf.until(lambda: len(found()) >= number,
                       f'no record {status}')
        return found()

    def test_logins_by_chap_and_pap(self):
        self._up('amy', 'one', _AMY)
        self.assertEqual(5, self.vnf.ping('left', self.server))
        self._up('dan', 'four', _DAN, 'pap')
        self.assertEqual(5, self.vnf.ping('left', self.server))
        for words in (('amy', 'two'), ('amy', 'two', 'pap'),
                      ('eve', 'one'), ('own', 'one')):
            self._refused(*words)
        self.assertEqual((2, 3), (self._count('accepts'),
                                  self._count('rejects')))
        self.assertEqual(4, self.vnf.count('server.rejected'))
        self.assertEqual((0, 0), (self._count('bad'),
                                  self._count('timeouts')))
        self.assertEqual(2, self.vnf.count('server.count'))
        self.assertEqual([f'{_MEGABIT * 8},{_MEGABIT * 4},0,0,0,676f6c64'],
                         [line.split()[-1] for line in self.read(
                             'server.state').splitlines() if 'amy' in line])

    def test_an_address_that_is_not_of_the_subscribers(self):
        self._refused('carl', 'three')
        self.assertEqual(1, self.vnf.count('server.unusable'))

    def test_the_account_of_a_session(self):
        self._up('amy', 'one', _AMY)
        start, = self._records('Start')
        self.assertEqual(('amy', '0x676f6c64', _AMY, 'RADIUS'), tuple(
            start[name] for name in ('User-Name', 'Class',
                                     'Framed-IP-Address',
                                     'Acct-Authentic')))
        self.assertEqual(1, self.vnf.ping('right', _AMY, 1, '-s', 72))
        self.vnf.swap()
        self.assertEqual(1, self.vnf.ping('right', _AMY, 1, '-s', 72))
        self.write('server.disconnect', 'amy')
        stop, = self._records('Stop')
        self.assertEqual(start['Acct-Session-Id'], stop['Acct-Session-Id'])
        self.assertEqual('Admin-Reset', stop['Acct-Terminate-Cause'])
        packets = [int(stop[f'Acct-{way}-{what}'])
                   for way in ('Input', 'Output')
                   for what in ('Packets', 'Octets')]
        self.assertEqual([2, 200, 2, 200], packets)
        self.vnf.until(lambda: self._count('recorded') == 2,
                       'a record is not confirmed')

    def test_a_session_ends_when_its_time_is_over(self):
        peer = self._up('bob', 'two', _BOB)
        self.assertIn('the session is over', self.vnf.wait(peer))
        self.assertIn(' session-timeout', self.read('server.ended'))
        stop, = self._records('Stop')
        self.assertEqual('Session-Timeout', stop['Acct-Terminate-Cause'])
        self.assertLessEqual(3, int(stop['Acct-Session-Time']))

    def test_a_silent_server_and_a_wrong_key(self):
        self.write('server.radius_servers', f'{_SILENT} {self.server}')
        self._up('amy', 'one', _AMY)
        self.assertEqual((1, 2), (self._count('timeouts'),
                                  self._count('repeated')))
        self.assertEqual(1, self._count('accepts', 1))
        self._up('dan', 'four', _DAN)
        self.assertEqual(1, self._count('requests'),
                         'a silent server is asked first')
        self.write('server.radius_servers', self.server)
        self.write('server.radius_secret', 'another')
        self._refused('bob', 'two')
        self.assertEqual(0, self._count('rejects'))

    def test_ipv6_by_framed_prefix_and_by_the_networks(self):
        right = f'{self.vnf.interfaces[1].ip6}'
        host = '2001:db8:2::9'
        testbed.ip('-n', self.vnf.namespace('right'), 'address', 'add',
                   f'{host}/64', 'dev', 'eth0', 'nodad')
        testbed.ip('-n', self.vnf.namespace('right'), 'route', 'add',
                   '2001:db8:9::/56', 'via', right)
        for name, password, address, prefix in (
                ('amy', 'one', _AMY, '2001:db8:9:77:'),
                ('dan', 'four', _DAN, '2001:db8:9:67:')):
            peer = self._up(name, password, address, 'six')
            self.vnf.until(lambda: prefix in self._addresses(),
                           f'no address of {prefix}')
            own, = re.findall(rf'inet6 ({prefix}[0-9a-f:]+)/64',
                              self._addresses())
            self.assertEqual(3, self.vnf.ping('left', host, 3, '-I', own))
            self.assertEqual(3, self.vnf.ping('right', own, 3))
            self.assertEqual(1, self.vnf.ping('left', right, 1, '-I', own))
            self.assertEqual(1, self.vnf.ping(
                'right', own, 1, '-s', 1444, '-M', 'do'))
            self._check_source(name, host)
            self.vnf.swap()
            self.assertEqual(1, self.vnf.ping('left', host, 1, '-I', own))
            self.write('server.disconnect', name)
            self.assertIn('the session is over', self.vnf.wait(peer))

    def _addresses(self):
        return self.vnf.run('left', 'ip', '-6', 'address', 'show', 'scope',
                            'global')

    def _check_source(self, name, host):
        """Another subscriber's address gets nothing."""
        other, device = '2001:db8:9:99::1', f'{name}{os.getpid()}'
        testbed.ip('-n', self.vnf.namespace('left'), 'address', 'add',
                   f'{other}/128', 'dev', device, 'nodad')
        before = self.vnf.count('server.spoofed')
        self.assertTrue(self.vnf.silent('left', host, '-I', other))
        self.assertGreater(self.vnf.count('server.spoofed'), before)
