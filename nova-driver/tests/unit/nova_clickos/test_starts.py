# SPDX-License-Identifier: Apache-2.0
"""Guests start: spawn, power on, reboots, resume, rebuild."""

from unittest import mock

from clickos_client import document
from clickos_client import secrets
import fixtures
from nova import exception as nova_exception
from nova import objects

from nova_clickos import exception
from nova_clickos import guest
from nova_clickos import vif
from tests.unit import cosmosd
from tests.unit.nova_clickos import base

MESSAGE = 'fw.click:12:5: c :: CheckLength: LENGTH: expected a count'


class SpawnTest(base.DriverTestCase):

    def refused(self, cls, *parts, **values):
        server = base.instance(**values)
        error = self.assertRaises(cls, self.spawn, server)
        for part in parts:
            self.assertIn(part, error.format_message())
        self.assertEqual({}, self.cosmosd.guests)
        return error

    def test_guest_gets_everything(self):
        self.spawn(base.instance(user_data=base.document(
            config_name='fw.click', writes=[['fw.config', 'deny all']])))
        args = self.cosmosd.args('create')
        self.assertEqual(
            {'uuid': base.UUID, 'name': 'fw',
             'image_sha256': cosmosd.SHA256, 'memory_mib': 8,
             'config': base.CONFIG, 'config_name': 'fw.click',
             'writes': [['fw.config', 'deny all']], 'timeout_ms': 10000,
             'number': 0, 'hold': False, 'has_secrets': False,
             'replace': True, 'vifs': args['vifs']}, args)
        self.assertEqual(['vale0'], [v['switch'] for v in args['vifs']])

    def test_a_guest_has_the_names_of_server_and_vnf(self):
        # Names as people read them, and as an attacker would choose them.
        for name, vnf_name, shown in (
                ('VDU1-0-x', 'my wall', 'VDU1-0-x (my wall)'),
                ('Wände', None, 'Wände'), ('', None, 'instance-00000001'),
                ('a\x1b[2J\n\u202eb', '\0', 'a?[2J??b (?)'),
                ('\ud800', None, '?'), ('ä' * 255, 'v', 'ä' * 127),
                ('n' * 255, 'v', 'n' * 255)):
            self.spawn(base.instance(display_name=name, metadata={
                key: value for key, value in
                {'clickos_vnf_name': vnf_name}.items() if value}))
            self.assertEqual(shown, self.cosmosd.args('create')['name'])
            self.assertLessEqual(len(shown.encode()), 255)
            self.driver.destroy(mock.sentinel.context, base.instance(),
                                base.network_info())

    def test_first_start_asks_nobody(self):
        # clickos-api is not there; a first start must not need it.
        self.spawn(base.instance())
        self.assertIn(base.UUID, self.cosmosd.guests)

    def test_image_is_remembered_for_the_next_start(self):
        server = base.instance()
        self.spawn(server)
        self.assertEqual(cosmosd.SHA256,
                         server.system_metadata['clickos_image_sha256'])

    def test_guests_message_reaches_the_fault(self):
        self.cosmosd.faults['create'] = ('bad-config', MESSAGE)
        error = self.refused(exception.GuestNotStarted)
        # Nova aborts the build on this class and stores this text.
        self.assertIsInstance(error, nova_exception.BuildAbortException)
        self.assertEqual(MESSAGE, error.format_message())

    def test_tenants_errors_abort_the_build(self):
        for code in ('bad-request', 'bad-image', 'no-such-element',
                     'no-such-handler', 'handler-error', 'not-permitted',
                     'dead-guest', 'timeout', 'too-long'):
            self.cosmosd.faults['create'] = (code, 'why')
            error = self.refused(exception.GuestNotStarted)
            self.assertEqual('why', error.format_message())

    def test_hosts_errors_let_nova_try_another(self):
        for code in ('no-memory', 'too-many', 'exists', 'store', 'switch',
                     'internal'):
            self.cosmosd.faults['create'] = (code, 'why')
            error = self.refused(exception.HostCannotStart, 'why')
            self.assertIsInstance(error,
                                  nova_exception.ComputeResourcesUnavailable)

    def test_a_tenant_can_read_why_a_host_was_left(self):
        self.cosmosd.faults['create'] = ('switch', 'valed is away')
        self.refused(exception.HostCannotStart)
        finish = self.action_events.event_finish_with_failure
        (_context, uuid, name), noted = finish.call_args
        self.assertEqual((base.UUID, 'clickos_start'), (uuid, name))
        self.assertIn('valed is away', str(noted['exc_val']))
        self.assertIsNotNone(noted['exc_tb'])

    def test_a_start_at_boot_has_no_action_to_note(self):
        self.cosmosd.faults['create'] = ('switch', 'valed is away')
        self.action_events.event_start.side_effect = (
            nova_exception.InstanceActionNotFound(
                request_id='r', instance_uuid=base.UUID))
        self.refused(exception.HostCannotStart, 'valed is away')

    def test_a_guests_own_fault_needs_no_note(self):
        self.cosmosd.faults['create'] = ('bad-config', MESSAGE)
        self.refused(exception.GuestNotStarted)
        self.action_events.event_start.assert_not_called()

    def test_a_guest_is_active_when_its_ports_have_rules(self):
        nic = base.vif()
        nic['details']['vale_filtered'] = True
        self.useFixture(fixtures.MockPatchObject(guest, 'OPEN_PAUSE_S', 0))
        self.useFixture(fixtures.MockPatchObject(guest, 'OPEN_LOOKS', 5))
        for closed_looks, looks in ((0, 1), (2, 3), (9, 5)):
            self.cosmosd.closed_looks = closed_looks
            self.cosmosd.requests.clear()
            self.spawn(base.instance(), base.network_info(nic))
            self.assertEqual(looks, self.cosmosd.verbs().count('vif-list'))

    def test_the_role_of_a_port_reaches_the_switch(self):
        nic = base.vif()
        for serves in (False, True):
            nic['details']['vale_dhcp_server'] = serves
            (found,) = vif.from_network_info(base.network_info(nic))
            self.assertEqual(serves, found.get('dhcp_server', False))

    def test_lost_answer_is_undone(self):
        self.cosmosd.faults['create'] = None
        self.refused(exception.CosmosdUnavailable)
        self.assertEqual(['host', 'host', 'create', 'destroy', 'create',
                          'destroy'],
                         self.cosmosd.verbs())

    def test_undo_failing_does_not_hide_the_cause(self):
        real = self.cosmosd._do_create

        def create(**args):
            self.cosmosd.faults['destroy'] = ('internal', 'undo failed')
            real(**args)
            raise cosmosd.Refusal('bad-config', MESSAGE)

        self.cosmosd._do_create = create
        error = self.assertRaises(exception.GuestNotStarted, self.spawn,
                                  base.instance())
        self.assertEqual(MESSAGE, error.format_message())

    def test_cosmosd_away(self):
        self.cosmosd.stop()
        with self.assertLogs(exception.LOG.logger) as logs:
            error = self.refused(exception.CosmosdUnavailable,
                                 'is not reachable on ...: ')
        self.assertNotIn('/', error.format_message())
        self.assertIn(self.cosmosd.path, logs.output[0])
        self.cosmosd.start()

    def test_no_path_of_the_host_reaches_the_tenant(self):
        for code, kind in (('internal', exception.HostCannotStart),
                           ('state-dir', exception.HostCannotStart),
                           ('store', exception.DaemonUnavailable),
                           ('dead-guest', exception.GuestNotStarted)):
            self.cosmosd.faults['create'] = code, '/var/lib/x.json: full'
            error = self.refused(kind, '...: full')
            self.assertNotIn('/var', error.format_message())
        self.cosmosd.faults['create'] = 'bad-config', 'probe: /health: no'
        self.refused(exception.GuestNotStarted, '/health')

    def test_a_refused_operation_has_no_path(self):
        self.spawn(base.instance())
        self.cosmosd.faults['pause'] = 'internal', '/run/x.sock: gone'
        error = self.assertRaises(exception.CosmosdRefused, self.driver.pause,
                                  base.instance())
        self.assertIn('cannot pause the guest: ...: gone',
                      error.format_message())

    def test_bad_user_data_creates_nothing(self):
        self.refused(exception.GuestNotStarted, 'user_data', user_data=None)
        self.assertNotIn('create', self.cosmosd.verbs())

    def test_tenants_image_creates_nothing(self):
        self.glance.get.return_value['os_hash_value'] = '00' * 32
        self.refused(exception.GuestNotStarted, 'not the ClickOS engine')
        self.assertNotIn('create', self.cosmosd.verbs())

    def test_unbound_port_creates_nothing(self):
        self.assertRaises(
            exception.GuestNotStarted, self.spawn, base.instance(),
            nics=base.network_info(base.vif(type='binding_failed')))
        self.assertNotIn('create', self.cosmosd.verbs())

    def test_disks_are_refused(self):
        for disks in ({'block_device_mapping': ['volume']},
                      {'ephemerals': ['e']},
                      {'swap': {'device_name': '/dev/vdb', 'swap_size': 1}}):
            error = self.assertRaises(
                exception.GuestNotStarted, self.spawn, base.instance(),
                block_device_info=disks)
            self.assertIn('no disk', error.format_message())

    def test_volumes_are_refused_before_nova_makes_them(self):
        volume, disk = (
            objects.BlockDeviceMapping(destination_type=kind)
            for kind in ('volume', 'local'))
        found = self.useFixture(fixtures.MockPatchObject(
            objects.BlockDeviceMappingList, 'get_by_instance_uuid',
            autospec=True)).mock
        found.return_value = [disk]
        self.driver.prepare_for_spawn(base.instance())
        for image, mappings in ((base.IMAGE, [disk, volume]), ('', [disk])):
            found.return_value = mappings
            error = self.assertRaises(
                nova_exception.InstanceUnacceptable,
                self.driver.prepare_for_spawn,
                base.instance(image_ref=image))
            self.assertIn('no volume', error.format_message())

    def test_a_volume_is_not_attached(self):
        server = base.instance()
        for kind, error in (('volume', nova_exception.InvalidVolume),
                            ('local', NotImplementedError)):
            self.assertRaises(
                error, self.driver.get_device_name_for_instance, server, [],
                objects.BlockDeviceMapping(destination_type=kind))

    def test_a_config_drive_is_refused(self):
        server = base.instance()
        server.config_drive = 'True'
        error = self.assertRaises(exception.GuestNotStarted, self.spawn,
                                  server)
        self.assertIn('no config drive', error.format_message())
        self.assertEqual({}, self.cosmosd.guests)

    def test_injected_files_are_refused(self):
        error = self.assertRaises(
            exception.GuestNotStarted, self.driver.spawn,
            mock.sentinel.context, base.instance(), mock.sentinel.image,
            [('/etc/motd', b'x')], None, {})
        self.assertIn('no file system', error.format_message())

    def test_an_images_own_mapping_is_no_disk(self):
        self.spawn(base.instance(), block_device_info={
            'image': ['image'], 'swap': None, 'ephemerals': [],
            'block_device_mapping': []})

    def test_powered_off(self):
        self.spawn(base.instance(), power_on=False)
        self.assertEqual({}, self.cosmosd.guests)


class StartAgainTest(base.DriverTestCase):
    """power on, reboots, resume, rebuild."""

    def setUp(self):
        super().setUp()
        # The HTTP edge has its own tests.
        self.fetch = self.useFixture(fixtures.MockPatchObject(
            self.driver._desired_state, 'fetch', autospec=True,
            return_value=base.DESIRED)).mock
        self.server = base.instance(
            user_data=base.document(writes=[['fw.config', 'allow all'],
                                            ['fw.log', 'on']]),
            launched_at=base.STARTED,
            system_metadata={'clickos_image_sha256': cosmosd.SHA256})

    def ways(self):
        server, nics = self.server, base.network_info()
        yield lambda: self.driver.power_on(None, server, nics)
        yield lambda: self.driver.reboot(None, server, nics, 'HARD')
        yield lambda: self.driver.reboot(None, server, nics, 'SOFT')
        yield lambda: self.driver.resume_state_on_host_boot(
            None, server, nics, None)
        yield lambda: self.spawn(server)

    def test_a_replaced_configuration_is_used(self):
        self.fetch.return_value = document.Desired(
            (('a.x', '1'),), document.Configuration('Idle;', 'new.click'))
        for way in self.ways():
            way()
            args = self.cosmosd.args('create')
            self.assertEqual(
                ('Idle;', 'new.click', [['a.x', '1']]),
                (args['config'], args['config_name'], args['writes']))

    def test_desired_state_is_applied(self):
        for start in self.ways():
            start()
            self.assertEqual([['fw.log', 'on'], ['fw.config', 'deny all']],
                             self.cosmosd.args('create')['writes'])
            self.fetch.assert_called_with(base.UUID, base.PROJECT)

    def test_a_guest_forwards_after_its_start_is_confirmed(self):
        self.fetch.return_value = document.Desired(number=7, revision=2)
        for start in self.ways():
            self.cosmosd.requests.clear()
            self.confirmed.side_effect = [False, True]
            start()
            self.assertEqual(
                ['create', 'destroy', 'create', 'release'],
                [verb for verb in self.cosmosd.verbs()
                 if verb in ('create', 'destroy', 'release')])
            args = self.cosmosd.args('create')
            self.assertEqual((7, True), (args['number'], args['hold']))
            self.confirmed.assert_called_with(
                self.driver._desired_state, base.UUID, self.server,
                self.fetch.return_value, cosmosd.INCARNATION)

    def test_a_guest_runs_on_where_no_other_can_start(self):
        self.cosmosd.guests[base.UUID] = runs = {'state': 'running'}
        for code, reason in (
                ('state-dir', 'state_dir: guests/x.json: No space left on '
                              'device (os error 28)'),
                ('no-memory', '8 MiB asked, 64 of 64 MiB are in use'),
                ('switch', 'valed is away')):
            self.cosmosd.faults['create'] = code, reason
            error = self.assertRaises(
                exception.HostCannotStart, self.driver.reboot, None,
                self.server, base.network_info(), 'HARD')
            self.assertIn(reason, error.format_message())
            self.assertEqual({base.UUID: runs}, self.cosmosd.guests)
        self.assertNotIn('destroy', self.cosmosd.verbs())

    def outcome(self):
        """Return what the driver noted last."""
        finish = self.action_events.event_finish_with_failure
        (_context, uuid, name), noted = finish.call_args
        self.assertEqual((base.UUID, 'clickos_start'), (uuid, name))
        self.assertEqual(self.action_events.event_start.call_count,
                         finish.call_count)
        return noted['exc_val'], noted['exc_tb']

    def reboot(self):
        self.driver.reboot(None, self.server, base.network_info(), 'HARD')

    def test_the_outcome_of_each_reboot_is_noted(self):
        self.reboot()
        self.assertEqual((None, None), self.outcome())
        for code, kind in (('bad-config', exception.GuestNotStarted),
                           ('no-memory', exception.HostCannotStart)):
            self.cosmosd.faults['create'] = code, 'why'
            self.assertRaises(kind, self.reboot)
            error, trace = self.outcome()
            self.assertIsInstance(error, kind)
            self.assertIsNotNone(trace)
        self.assertEqual(3, self.action_events.event_start.call_count)

    def test_a_note_has_no_address_of_a_service(self):
        fault = nova_exception.GlanceConnectionFailed(
            server='http://10.0.0.3:9292', reason='refused')
        with mock.patch.object(self.driver._images, 'provide',
                               autospec=True, side_effect=fault):
            self.assertRaises(nova_exception.GlanceConnectionFailed,
                              self.reboot)
        self.assertEqual('GlanceConnectionFailed', self.outcome()[0])

    def test_a_note_that_is_lost_fails_no_reboot(self):
        self.action_events.event_start.side_effect = ValueError('no answer')
        self.reboot()
        self.assertIn(base.UUID, self.cosmosd.guests)
        self.cosmosd.faults['create'] = 'bad-config', 'why'
        self.assertRaises(exception.GuestNotStarted, self.reboot)

    def test_only_a_guest_that_waits_goes_with_a_lost_answer(self):
        real = self.cosmosd._do_create
        for is_made in (False, True):
            self.cosmosd.guests[base.UUID] = {'state': 'running',
                                              'held': False}
            self.cosmosd.faults['create'] = None
            self.cosmosd._do_create = real if is_made else lambda **_: {}
            self.assertRaises(
                exception.CosmosdUnavailable, self.driver.reboot, None,
                self.server, base.network_info(), 'HARD')
            self.assertEqual(not is_made, base.UUID in self.cosmosd.guests)

    def test_a_start_that_is_not_confirmed_leaves_nothing(self):
        for outcome in (exception.GuestNotStarted(reason='503'),
                        [False] * 5):
            self.confirmed.side_effect = outcome
            self.assertRaises(exception.GuestNotStarted,
                              self.driver.power_on, None, self.server,
                              base.network_info())
            self.assertEqual({}, self.cosmosd.guests)
            self.assertNotIn('release', self.cosmosd.verbs())

    def test_a_state_that_user_data_refers_to(self):
        self.server.user_data = document.referring(base.UUID)
        self.server.launched_at = None
        found = document.Desired(
            (('a.x', '1'),), document.Configuration('Idle;', 'new.click'),
            number=9)
        with mock.patch.object(self.driver._desired_state, 'fetch_state',
                               autospec=True, return_value=found) as fetch:
            self.spawn(self.server)
        fetch.assert_called_with(base.UUID, base.PROJECT)
        args = self.cosmosd.args('create')
        self.assertEqual(('Idle;', [['a.x', '1']], 9, True),
                         (args['config'], args['writes'], args['number'],
                          args['hold']))

    def test_only_the_guest_gets_secrets(self):
        name = 'clickos-secret:' + base.UUID
        self.fetch.return_value = document.Desired(
            (('a.key', name),), revision=1,
            secrets=secrets.Secrets({name: 'hidden'}))
        self.driver.power_on(None, self.server, base.network_info())
        args = self.cosmosd.args('create')
        self.assertIn(['a.key', 'hidden'], args['writes'])
        self.assertIs(True, args['has_secrets'])
        for code, told, shown in (
                ('handler-error', 'a.key: "hid\\x64en": short',
                 secrets.HIDDEN),
                ('bad-request', 'a.key: h i d d e n', secrets.HIDDEN),
                ('a-later-one', 'a.key: hidden', secrets.HIDDEN),
                ('bad-config', 'fw.click:1:1: no class',
                 'fw.click:1:1: no class')):
            self.cosmosd.faults['create'] = code, told
            error = self.assertRaises(
                exception.GuestNotStarted, self.driver.power_on, None,
                self.server, base.network_info())
            self.assertEqual(shown, error.format_message())
        self.assertNotIn('hidden', repr(self.fetch.return_value))

    def test_words_about_values_without_secrets_are_shown(self):
        self.fetch.return_value = document.Desired((('a.x', '1'),),
                                                   revision=1)
        self.cosmosd.faults['create'] = 'handler-error', 'a.x: "1": short'
        error = self.assertRaises(
            exception.GuestNotStarted, self.driver.power_on, None,
            self.server, base.network_info())
        self.assertEqual('a.x: "1": short', error.format_message())
        self.assertFalse(self.cosmosd.args('create')['has_secrets'])

    def test_what_ran_is_replaced(self):
        for start in self.ways():
            self.cosmosd.guests = {base.UUID: {'state': 'crashed'}}
            start()
            self.assertEqual('running',
                             self.cosmosd.guests[base.UUID]['state'])

    def test_without_desired_state_nothing_is_touched(self):
        self.fetch.side_effect = exception.GuestNotStarted(reason='503')
        for start in self.ways():
            self.cosmosd.guests = {base.UUID: {'state': 'running'}}
            self.assertRaises(exception.GuestNotStarted, start)
            self.assertEqual({base.UUID: {'state': 'running'}},
                             self.cosmosd.guests)

    def test_refused_writes_reach_the_tenant(self):
        self.cosmosd.faults['create'] = ('handler-error', 'fw.config: no')
        error = self.assertRaises(
            exception.GuestNotStarted, self.driver.power_on, None,
            self.server, base.network_info())
        self.assertEqual('fw.config: no', error.format_message())
        self.assertEqual({}, self.cosmosd.guests)

    def test_no_image_is_downloaded_again(self):
        self.driver.power_on(None, self.server, base.network_info())
        self.glance.get.assert_not_called()

    def test_server_of_another_driver(self):
        self.server.system_metadata = {}
        error = self.assertRaises(
            exception.GuestNotStarted, self.driver.power_on, None,
            self.server, base.network_info())
        self.assertIn('rebuild', error.format_message())

    def test_an_evacuated_server_starts_on_another_host(self):
        """Nova spawns it there, and from API 2.95 leaves it stopped."""
        self.assertTrue(self.driver.capabilities['supports_evacuate'])
        self.assertFalse(self.driver.instance_on_disk(self.server))
        self.spawn(self.server, power_on=False)
        self.assertEqual({}, self.cosmosd.guests)
        self.driver.power_on(None, self.server, base.network_info())
        self.assertEqual([['fw.log', 'on'], ['fw.config', 'deny all']],
                         self.cosmosd.args('create')['writes'])
