# SPDX-License-Identifier: Apache-2.0
"""What tenants may read of the texts of hosts."""

import time
import unittest

from clickos_client import host_text


class HostTextTest(unittest.TestCase):

    def test_no_path_and_no_address_of_a_host_is_shown(self):
        for text, shown in (
                ('cosmosd is not reachable on /run/clickos/cosmosd.sock: '
                 'Connection refused (is it running?)',
                 'cosmosd is not reachable on ...: '
                 'Connection refused (is it running?)'),
                ('/var/lib/cosmosd/a-b.json: No space left',
                 '...: No space left'),
                ("open('/etc/x y')", "open('... y')"),
                ('unix:/run/valed.sock, (/proc/self/fd/3)',
                 'unix:..., (...)'),
                ('store: /local/domain/7/vif', 'store: ...'),
                ('//run/x and /0/y', '... and ...'),
                ('to http://10.0.0.7:8004/v1 at 10.0.0.7:80',
                 'to ... at ...')):
            self.assertEqual(shown, host_text.shown('internal', text))
            self.assertEqual(shown, host_text.shown('a new code', text))

    def test_no_address_of_ipv6_is_shown(self):
        for place in (
                '2001:db8::7', '2001:DB8::7:a', '::1', 'fe80::1%eth0',
                'fe80::a:1%25br-ex.7', '1:2:3:4:5:6:7:8', 'fd00::',
                '::ffff:10.0.0.7', '64:ff9b::10.0.0.7', '[2001:db8::7]:8004',
                '[fe80::1%eth0]:80', '[::1]', '1:2:3:4:5:6:10.0.0.7'):
            for text in ('connect to {}: refused', "('{}', 8004)", 'by:{},',
                         'at {}', '<{}>', 'peer={}.', 'net {}/64'):
                self.assertEqual(text.format('...'), host_text.shown(
                    'internal', text.format(place)))
        self.assertEqual('to ... at', host_text.without_places(
            'to http://[2001:db8::7]:8004/v1 at'))

    def test_no_address_next_to_an_underscore_is_shown(self):
        for text, shown in (
                ('at 2001:db8::1_x', 'at ..._x'), ('ip6_fe80::1', 'ip6_...'),
                ('1:2:3:4:5:6:7:8_', '..._'), ('_::1_', '_..._'),
                ('é2001:db8::1é', 'é...é'), ('ip_10.0.0.7', 'ip_...')):
            self.assertEqual(shown, host_text.without_places(text))

    def test_no_name_of_a_host_is_shown(self):
        for text, shown in (
                ('tcp compute-7.internal:5671: refused', 'tcp ...: refused'),
                ('AMQP server on compute1:5672.', 'AMQP server on ....'),
                ('to (rabbit@compute1), rabbit@a.b-7.', 'to (...), ....'),
                ('x10.0.0.1 and é10.0.0.1:80', 'x... and é...'),
                ('a/var/lib/cosmosd/x: no', 'a...: no'),
                ('../etc/x and ./run/y.sock', '..... and ....'),
                ('on host compute-7: no', 'on host ...: no'),
                ('host=c7.x is away', 'host=... is away'),
                ('api.cloud.example.org, nova.lan', '..., ...'),
                ('Compute-7.Internal, C7.DC.EXAMPLE.ORG', '..., ...')):
            self.assertEqual(shown, host_text.without_places(text))

    def test_ordinary_words_remain(self):
        for text in ('Counter@3, fw/Queue@12: full', 'fw.click:1200:5: a',
                     'fw.click:1200: a', 'limit:65536, got 70000',
                     'no host was found for 2 guests', 'fw/run.count',
                     'tcp packets of fw.net_count', 'release 2.0.1',
                     'in/var, home/ and etc/x', 'pool.statistics: 1000'):
            self.assertEqual(text, host_text.without_places(text))

    def test_words_with_colons_remain(self):
        for text in ('c :: Counter; c::Counter -> d ::Queue', '::/0 and ::',
                     'std::io::Error', '10:30:45', '02:00:00:09:01:01',
                     'fw.click:12:5: a', 'vale0:fw: gone', 'a:b:c'):
            self.assertEqual(text, host_text.without_places(text))

    def test_words_about_a_request_remain(self):
        for text in ('memory: 8 MiB of 2048/4096 MiB are left',
                     'engine/7: 0/0 and fw/q.count, ::/0, 64/'):
            self.assertEqual(text, host_text.shown('no-memory', text))
        text = 'pool.probe: /health of 10.0.0.7: no such page'
        for code in ('bad-config', 'handler-error', 'bad-request'):
            self.assertEqual(text, host_text.shown(code, text))

    def test_a_hostile_text_costs_little(self):
        began_s = time.process_time()
        for part in ('a', '/', '/1', '-/', '1.', "host='", 'a://', '/a.',
                     'a:', ':', '::', 'a::', '[::a', '::1%', 'a:' * 6 + '1.',
                     'a@', '@', 'a.', 'a-', '1a:', 'a1:', '/var', '/var/',
                     'host ', 'host a', 'a.com', 'a1:1000'):
            text = host_text.without_places(part * (4 << 20))
            self.assertLessEqual(len(text), 2 * host_text.MAX_SHOWN)
        self.assertLess(time.process_time() - began_s, 1)
