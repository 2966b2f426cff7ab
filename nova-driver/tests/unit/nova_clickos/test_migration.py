# SPDX-License-Identifier: Apache-2.0
"""Guests that move while they run: two cosmosd doubles, a real connection."""

import json
import socket
import ssl
import threading
import time
from unittest import mock

import cosmos_client
import fixtures
from nova import exception as nova_exception
from nova.objects import migrate_data as migrate_data_objects

from nova_clickos import guest
from nova_clickos.migration import channel
from nova_clickos.migration import identity
from nova_clickos.migration import incoming
from nova_clickos.migration import operations
from nova_clickos.migration import outgoing
from tests.unit import cosmosd
from tests.unit.nova_clickos import base

VALUES = {'config': 'FromDevice(0) -> rw;', 'rw.state': 'ip-rewriter 1\n',
          'a.rate': '7'}
CONFIG = VALUES['config']


def until(done):
    end_s = time.monotonic() + 60
    while not done():
        assert time.monotonic() < end_s, 'not in time'
        time.sleep(0.01)


class TestCase(base.DriverTestCase):
    """The driver is the source; `operations` are the target's."""

    def setUp(self):
        super().setUp()
        self.conf.config(group='clickos', migration_address='127.0.0.1')
        self.cosmosd.handlers = ['rw.state', 'c.count', 'a.rate']
        self.server = base.instance()
        self.server.name  # noqa: B018 - Nova computes it from options
        self.spawn(self.server)
        self.guest = self.cosmosd.guests[base.UUID]
        self.guest['values'] = dict(VALUES)
        self.other = self.useFixture(cosmosd.FakeCosmosd())
        self.other.handlers = self.cosmosd.handlers
        client = cosmos_client.CosmosClient(self.other.path, 60)
        self.target = operations.LiveMigration(client, guest.Guests(client))
        self.addCleanup(self.target.arrived, self.server)

    def prepare(self):
        """Return what Nova carries after the target is prepared."""
        data = self.target.check_target(
            cosmosd.SHA256, f'clickos-{self.other.host_kind}',
            self.other._do_host())
        data = self.driver.check_can_live_migrate_source(
            None, self.server, data)
        data.vifs = migrate_data_objects.VIFMigrateData \
            .create_skeleton_migrate_vifs(base.network_info())
        for vif in data.vifs:
            vif.vif_type, vif.vnic_type = 'vale', 'normal'
            vif.profile, vif.vif_details = {}, base.vif()['details']
        return self.target.prepare(self.server, cosmosd.SHA256, data)

    def move(self, data):
        """Return which of Nova's callbacks was called."""
        post, self.recover = mock.Mock(), mock.Mock()
        self.driver.live_migration(None, self.server, 'other', post,
                                   self.recover, False, data)
        return post.called, self.recover.called

    def assertStays(self):
        """Check that the guest runs here, and that no other is left."""
        until(lambda: not self.guest.get('halted'))
        self.assertIn(base.UUID, self.cosmosd.guests)
        until(lambda: not self.other.guests)


class MoveTest(TestCase):

    def test_a_guest_moves_with_its_values(self):
        self.guest['vifs'][0]['devid'] = 3
        data = self.prepare()
        found = self.other.guests[base.UUID]
        self.assertEqual([3], [vif['devid'] for vif in found['vifs']])
        self.assertEqual('arriving', found['state'])
        self.assertEqual((True, False), self.move(data))
        self.assertEqual({}, self.cosmosd.guests)
        until(lambda: not found['halted'])
        self.assertEqual(('running', CONFIG), (found['state'],
                                               found['config']))
        self.assertEqual(
            {key: value for key, value in VALUES.items()
             if key != 'config'}, found['values'])
        self.assertEqual({'incarnation': cosmosd.INCARNATION, 'newest': 7,
                          'applied': [6, 7]}, found['changes'])
        self.driver.post_live_migration(None, self.server, None, data)
        self.target.arrived(self.server)
        self.assertIn(base.UUID, self.other.guests)

    def test_a_guest_keeps_its_vcpus(self):
        self.server.flavor = base.flavor(8, vcpus=2)
        self.prepare()
        self.assertEqual(2, self.other.guests[base.UUID]['vcpus'])

    def test_what_was_learned_comes_last(self):
        self.move(self.prepare())
        writes = [pair[0] for verb, args in self.other.requests
                  if verb == 'handler-write' for pair in args['writes']]
        self.assertEqual(['a.rate', 'rw.state'], writes)

    def test_a_configuration_is_installed_while_the_guest_runs(self):
        self.move(self.prepare())
        here = self.cosmosd.verbs()
        self.assertLess(here.index('router-list'),
                        here.index('migrate-begin'))
        self.assertEqual(1, self.other.verbs().count('router-install'))
        args = self.other.args('router-install')
        self.assertEqual((CONFIG, True), (args['config'], args['halted']))

    def test_it_stays_if_the_target_refuses_it(self):
        for verb in ('router-install', 'handler-write', 'migrate-finish'):
            data = self.prepare()
            self.other.faults = {verb: ('bad-config', 'no such element')}
            self.assertEqual((False, True), self.move(data), verb)
            self.other.faults.clear()
            self.assertStays()

    def test_an_aborted_migration_leaves_the_guest_where_it_is(self):
        for verb in ('router_list', 'migrate_begin'):
            data = self.prepare()
            with self.aborted_at(verb):
                self.assertEqual((False, True), self.move(data), verb)
            self.assertEqual({'migration_status': 'cancelled'},
                             self.recover.call_args.kwargs)
            self.assertStays()

    def test_an_abort_after_the_commit_comes_too_late(self):
        with self.aborted_at('migrate_commit'):
            self.assertEqual((True, False), self.move(self.prepare()))

    def aborted_at(self, verb):
        """Abort while cosmosd carries a verb out."""
        name = f'_do_{verb}'
        carry_out = getattr(self.cosmosd, name)

        def abort(**args):
            self.driver.live_migration_abort(self.server)
            return carry_out(**args)
        return mock.patch.object(self.cosmosd, name, abort)

    def test_nothing_is_aborted_or_forced_that_does_not_go_on(self):
        self.assertRaises(nova_exception.MigrationError,
                          self.driver.live_migration_abort, self.server)
        self.driver.live_migration_force_complete(self.server)
        self.assertEqual((True, False), self.move(self.prepare()))
        self.assertRaises(nova_exception.MigrationError,
                          self.driver.live_migration_abort, self.server)

    def without_rate(self, code):
        """Let the guest refuse to read one handler."""
        read = self.cosmosd._do_handler_read

        def refuse(name, **args):
            if name == 'a.rate':
                raise cosmosd.Refusal(code, 'no value')
            return read(name=name, **args)
        return mock.patch.object(self.cosmosd, '_do_handler_read', refuse)

    def test_it_stays_if_a_value_cannot_be_read(self):
        for code in ('bad-request', 'timeout', 'store'):
            data = self.prepare()
            with self.without_rate(code):
                self.assertEqual((False, True), self.move(data), code)
            self.assertStays()

    def test_a_handler_may_have_no_value(self):
        data = self.prepare()
        with self.without_rate('handler-error'):
            self.assertEqual((True, False), self.move(data))

    def test_it_stays_if_the_target_is_gone(self):
        data = self.prepare()
        self.target.undo(self.server)
        self.assertEqual((False, True), self.move(data))
        self.assertStays()

    def test_nobody_starts_a_guest_that_may_run_elsewhere(self):
        data = self.prepare()
        self.other.faults = {'migrate-finish': None,
                             'destroy': ('internal', '')}
        error = self.assertRaises(nova_exception.MigrationError, self.move,
                                  data)
        self.assertIn('the target may have the guest',
                      error.format_message())
        self.assertTrue(self.guest['halted'])

    def test_an_aborted_migration_leaves_nothing(self):
        self.prepare()
        self.target.undo(self.server)
        self.assertStays()

    def test_a_target_that_cannot_make_it_leaves_nothing(self):
        self.other.faults['migrate-receive'] = ('no-memory', '/run/x: 8 MiB')
        error = self.assertRaises(nova_exception.MigrationError, self.prepare)
        self.assertIn('...: 8 MiB', error.format_message())
        self.other.faults.clear()
        self.conf.config(group='clickos', migration_ports='1-1',
                         migration_address='192.0.2.1')
        error = self.assertRaises(nova_exception.MigrationError, self.prepare)
        self.assertIn('no free port', error.format_message())
        self.assertNotIn('192.0.2.1', error.format_message())
        self.assertStays()


class SecretTest(TestCase):
    """Nova's debug log has what Nova carries."""

    def test_what_nova_logs_lets_nobody_in(self):
        data = self.prepare()
        log = '%s' % data
        self.assertIn('BEGIN CERTIFICATE', log)
        for secret in ('PRIVATE', 'token', 'password'):
            self.assertNotIn(secret, log)
        thief = channel.connect(data.filename, identity.Identity(), 60)
        self.assertRaises(channel.ChannelError, thief.receive, 60)
        self.assertEqual((True, False), self.move(data))

    def test_the_key_is_for_one_move(self):
        data = self.prepare()
        self.assertEqual((True, False), self.move(data))
        self.assertEqual((False, True), self.move(data))

    def test_a_source_of_an_earlier_version_is_named(self):
        data = self.target.check_target(
            cosmosd.SHA256, 'clickos-process', self.other._do_host())
        data.filename, data.vifs = '{"port": 0}', []
        error = self.assertRaises(
            nova_exception.MigrationError, self.target.prepare, self.server,
            cosmosd.SHA256, data)
        self.assertIn('earlier driver', error.format_message())
        self.assertEqual({}, self.other.guests)

    def test_keys_of_moves_that_never_begin_are_bounded(self):
        self.useFixture(fixtures.MockPatchObject(
            operations, '_MOST_CHECKED', 3))
        source = operations.LiveMigration(None, None)
        for uuid in 'abcab':
            source._new_identity(uuid)
        self.assertEqual(['c', 'a', 'b'], list(source._identities))
        source._new_identity('d')
        self.assertEqual(['a', 'b', 'd'], list(source._identities))


class CheckTest(TestCase):

    def refused(self, call, *args):
        error = self.assertRaises(nova_exception.MigrationPreCheckError, call,
                                  *args)
        return error.format_message()

    def test_other_hosts_are_refused(self):
        check = self.driver.check_can_live_migrate_destination
        # Nova gives a dict, the primitive of its object.
        process, xen = ({'hypervisor_type': f'clickos-{kind}'}
                        for kind in ('process', 'xen'))
        self.server.system_metadata = {'clickos_image_sha256': 'other'}
        self.assertIn('another engine', self.refused(
            check, None, self.server, process, None))
        self.assertIn('clickos-xen and clickos-process', self.refused(
            check, None, self.server, xen, None))
        self.cosmosd.host_kind = 'xen'
        self.assertIn('clickos-process and clickos-xen', self.refused(
            check, None, self.server, process, None))
        check(None, self.server, xen, None)

    def test_guests_that_do_not_run_are_refused(self):
        self.guest['state'] = 'paused'
        self.assertIn('is paused', self.refused(
            self.driver.check_can_live_migrate_source, None, self.server,
            mock.Mock()))

    def test_a_xen_host_gets_the_image_before_the_guest(self):
        self.cosmosd.host_kind = 'xen'
        images = self.driver._images
        with mock.patch.object(images, 'provide', autospec=True) as provide, \
                mock.patch.object(self.driver._migration, 'prepare') as make:
            self.driver.pre_live_migration(None, self.server, None, None,
                                           None, mock.Mock())
            self.assertEqual(self.server.image_ref, provide.call_args.args[1])
            self.assertTrue(make.called)
            make.reset_mock()
            provide.side_effect = nova_exception.ImageNotFound(image_id='x')
            error = self.assertRaises(
                nova_exception.MigrationError, self.driver.pre_live_migration,
                None, self.server, None, None, None, mock.Mock())
            self.assertIn('Image x could not be found',
                          error.format_message())
            self.assertFalse(make.called)

    def test_ports_of_one_host_are_refused(self):
        data = migrate_data_objects.LibvirtLiveMigrateData(filename='{}')
        error = self.assertRaises(
            nova_exception.MigrationError, self.driver.pre_live_migration,
            None, self.server, None, None, None, data)
        self.assertIn('binding-extended', error.format_message())


class ChannelTest(base.TestCase):

    def setUp(self):
        super().setUp()
        self.own = identity.Identity()
        self.listener = channel.Listener('127.0.0.1', range(49152, 49216),
                                         self.own.certificate)
        self.addCleanup(self.listener.close)
        self.over = threading.Event()
        self.found = []
        self.thread = threading.Thread(target=lambda: self.found.append(
            self.listener.accept(self.over.is_set)))
        self.thread.start()
        self.addCleanup(self.thread.join)
        self.addCleanup(self.over.set)
        self.invitation = json.loads(self.listener.invitation())
        self.place = self.invitation['address'], self.invitation['port']

    def connect(self, own=None, **changes):
        made = channel.connect(json.dumps({**self.invitation, **changes}),
                               own or self.own, 60)
        self.addCleanup(made.close)
        return made

    def silent(self):
        """Return a connection that says nothing."""
        sock = socket.create_connection(self.place)
        self.addCleanup(sock.close)
        sock.settimeout(60)
        return sock

    def assert_source_is_let_in(self):
        source = self.connect()
        self.thread.join(60)
        self.addCleanup(self.found[0].close)
        source.send({'n': 1})
        self.assertEqual({'n': 1}, self.found[0].receive(60))

    def test_strangers_do_not_keep_the_source_away(self):
        """None of them has to end first: their time is longer than ours."""
        self.useFixture(fixtures.MockPatchObject(channel, '_GREETING_S',
                                                 3600))
        for _ in range(channel._GREETINGS_OF_ONE):
            self.silent()
        with socket.create_connection(self.place) as stranger:
            stranger.sendall(b'GET / HTTP/1.0\r\n\r\n')
        slow = self.silent()
        slow.sendall(b'\x16\x03\x01')
        self.assert_source_is_let_in()

    def test_only_the_source_is_let_in(self):
        wrong = self.connect(identity.Identity())
        self.assertRaises(channel.ChannelError, wrong.receive, 60)
        context = ssl.create_default_context(
            cadata=self.invitation['certificate'])
        context.check_hostname = False
        nobody = context.wrap_socket(self.silent())
        self.addCleanup(nobody.close)
        self.assertRaises(ssl.SSLError, nobody.recv, 1)
        self.assert_source_is_let_in()

    def test_an_address_has_few_connections(self):
        """The oldest one ends for a new one."""
        self.useFixture(fixtures.MockPatchObject(channel, '_GREETING_S',
                                                 3600))
        many = [self.silent() for _ in range(3 * channel._GREETINGS_OF_ONE)]
        for sock in many[:-channel._GREETINGS_OF_ONE]:
            self.assertEqual(b'', sock.recv(1))
        self.assert_source_is_let_in()

    def test_all_addresses_have_few_connections_together(self):
        self.useFixture(fixtures.MockPatchObject(channel, '_GREETING_S',
                                                 3600))
        self.useFixture(fixtures.MockPatchObject(channel, '_GREETINGS', 2))
        oldest = self.silent()
        newer = socket.create_connection(self.place,
                                         source_address=('127.0.0.2', 0))
        self.addCleanup(newer.close)
        last = socket.create_connection(self.place,
                                        source_address=('127.0.0.3', 0))
        self.addCleanup(last.close)
        self.assertEqual(b'', oldest.recv(1))
        self.assert_source_is_let_in()

    def test_many_connections_do_not_end_those_of_others(self):
        """The oldest one of those that have most ends."""
        self.useFixture(fixtures.MockPatchObject(channel, '_GREETING_S',
                                                 3600))
        self.useFixture(fixtures.MockPatchObject(channel, '_GREETINGS', 4))
        socks = []
        for last in (2, 3, 3, 3, 4):
            socks.append(socket.create_connection(
                self.place, source_address=(f'127.0.0.{last}', 0)))
            self.addCleanup(socks[-1].close)
        self.assertEqual(b'', socks[1].recv(1))
        socks[0].setblocking(False)
        self.assertRaises(BlockingIOError, socks[0].recv, 1)
        self.assert_source_is_let_in()

    def test_a_host_has_a_network_of_ipv6(self):
        for texts, one in (
                (('2001:db8::1', '2001:db8::ffff:0:1'), '2001:db8::/64'),
                (('2001:db8:0:1::1',), '2001:db8:0:1::/64'),
                (('fe80::1%eth0', 'fe80::2%eth0'), 'fe80::/64'),
                (('192.0.2.1', '::ffff:192.0.2.1'), '192.0.2.1/32'),
                (('::ffff:192.0.2.2',), '192.0.2.2/32')):
            for text in texts:
                self.assertEqual(one, str(channel._network(text)))

    def test_a_stranger_has_no_more_time_for_a_slow_greeting(self):
        self.useFixture(fixtures.MockPatchObject(channel, '_GREETING_S', 0.3))
        slow = self.silent()
        began_s = time.monotonic()
        with self.assertRaises(OSError):
            while True:     # a record of 16 KiB, byte by byte
                slow.sendall(b'\x16\x03\x01\x40\x00'[:1])
                slow.settimeout(0.05)
                try:
                    if slow.recv(1) == b'':
                        raise ConnectionResetError
                except TimeoutError:
                    self.assertLess(time.monotonic(), began_s + 60)
        self.assert_source_is_let_in()

    def test_the_log_has_one_line_and_a_number(self):
        self.useFixture(fixtures.MockPatchObject(channel, '_GREETING_S',
                                                 3600))
        with self.assertLogs(channel.LOG.logger, 'WARNING') as logged:
            for _ in range(20):
                with socket.create_connection(self.place) as stranger:
                    stranger.sendall(b'GET / HTTP/1.0\r\n\r\n')
                    stranger.settimeout(60)
                    try:
                        while stranger.recv(100):
                            pass
                    except ConnectionResetError:
                        pass
            self.assert_source_is_let_in()
        self.assertEqual(2, len(logged.output), logged.output)
        self.assertIn('Rejected 20 connections', logged.output[1])

    def test_a_certificate_that_is_none(self):
        for bad in ('', 'x', None, 5):
            self.assertRaises(channel.ChannelError, channel.Listener,
                              '127.0.0.1', range(49152, 49216), bad)

    def test_another_target_is_refused(self):
        error = self.assertRaises(
            channel.ChannelError, self.connect,
            certificate=identity.Identity().certificate)
        self.assertIn('cannot be reached', str(error))

    def test_what_is_no_message(self):
        source = self.connect()
        self.thread.join(60)
        for text in (b'[1]\n', b'{\n', b'[' * 9999 + b'\n'):
            source._sock.sendall(text)
            self.assertRaises(channel.ChannelError, self.found[0].receive, 60)
        source._sock.sendall(b'x' * 5000)
        self.assertRaises(channel.ChannelError, self.found[0].receive, 5,
                          most=1024)

    def test_bad_invitations(self):
        for bad in ('', '[]', '{}', '{"certificate": 5}'):
            self.assertRaises(channel.ChannelError, channel.connect, bad,
                              self.own, 1)
        self.assertTrue(ssl.HAS_TLSv1_3)
        self.assertTrue(outgoing.Stayed and incoming.Arrivals)
