# SPDX-License-Identifier: Apache-2.0
"""The driver's methods against a cosmosd double behind a real socket."""

import hashlib
import importlib.metadata
import inspect
import os
import queue
import threading
from unittest import mock

from clickos_client import document
from clickos_client import secrets
import fixtures
from nova.compute import power_state
from nova.compute import task_states
from nova import exception as nova_exception
from nova import objects
from nova.virt import driver as nova_driver
from nova.virt import event as virtevent

import nova
from nova_clickos import driver
from nova_clickos import exception
from nova_clickos import guest
from nova_clickos import vif
from tests.unit import cosmosd
from tests.unit.nova_clickos import base

MESSAGE = 'fw.click:12:5: c :: CheckLength: LENGTH: expected a count'


#: Optional parameters by the release of Nova that brought them.
_BROUGHT = {'share_info': 34}
_RELEASE = int(importlib.metadata.version('nova').split('.')[0])


def _known_to_nova(method, novas):
    """Return the signature without what a later Nova passes as well."""
    spec = inspect.getfullargspec(method)
    args, defaults = list(spec.args), list(spec.defaults or ())
    while args[-1] not in inspect.getfullargspec(novas).args \
            and _BROUGHT.get(args[-1], 0) > _RELEASE:
        args.pop()
        defaults.pop()
    return spec._replace(args=args, defaults=tuple(defaults) or None)[:-1]


class SignatureTest(base.DriverTestCase):

    def test_methods_are_novas(self):
        ours = _public_methods(driver.ClickOSDriver)
        novas = _public_methods(nova_driver.ComputeDriver)
        self.assertEqual(set(), set(ours) - set(novas))
        for name, method in ours.items():
            self.assertEqual(inspect.getfullargspec(novas[name])[:-1],
                             _known_to_nova(method, novas[name]), name)

    def test_nova_loads_the_shim(self):
        """As installed: our nova/virt/clickos inside Nova's package."""
        folder = os.path.join(os.path.dirname(driver.__file__), '..', 'nova',
                              'virt')
        self.useFixture(fixtures.MonkeyPatch(
            'nova.virt.__path__', nova.virt.__path__ + [folder]))
        self.conf.config(compute_driver='clickos.driver.ClickOSDriver')
        loaded = nova_driver.load_compute_driver(self.virtapi)
        self.assertIsInstance(loaded, driver.ClickOSDriver)

    def test_shim_owns_no_package_of_nova(self):
        folder = os.path.join(os.path.dirname(driver.__file__), '..', 'nova')
        for path in ('', 'virt'):
            self.assertNotIn('__init__.py',
                             os.listdir(os.path.join(folder, path)))

    def test_images_are_raw(self):
        traits = self.driver.capabilities_as_traits()
        self.assertTrue(traits['COMPUTE_IMAGE_TYPE_RAW'])
        self.assertTrue(traits['COMPUTE_NET_ATTACH_INTERFACE'])


def _public_methods(cls):
    return {name: method for name, method
            in inspect.getmembers(cls, inspect.isfunction)
            if not name.startswith('_')}


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
        self.refused(exception.CosmosdUnavailable, self.cosmosd.path)

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


class SnapshotTest(base.DriverTestCase):

    def setUp(self):
        super().setUp()
        self.calls = []
        self.glance.get.return_value = {
            'disk_format': 'raw', 'container_format': 'bare', 'size': 9,
            'name': 'clickos'}
        self.glance.download.side_effect = lambda *_: iter((b'eng', b'ine'))
        self.glance.update.side_effect = self._update

    def _update(self, context, image_id, metadata, content):
        self.calls.append((image_id, metadata, content.read()))

    def snapshot(self):
        self.driver.snapshot(
            mock.sentinel.context, base.instance(), 'copy',
            lambda task_state, expected_state=task_states.IMAGE_SNAPSHOT:
            self.calls.append((expected_state, task_state)))

    def test_the_snapshot_is_a_copy_of_the_image(self):
        self.snapshot()
        self.assertEqual(
            [('image_snapshot', 'image_pending_upload'),
             ('image_pending_upload', 'image_uploading'),
             ('copy', {'disk_format': 'raw', 'container_format': 'bare'},
              b'engine')], self.calls)
        self.glance.download.assert_called_once_with(mock.sentinel.context,
                                                     base.IMAGE)

    def test_an_image_that_is_too_large(self):
        self.conf.config(group='clickos', max_image_mib=1)
        self.glance.download.side_effect = lambda *_: iter(
            (b'x' * (1 << 20), b'x'))
        error = self.assertRaises(exception.GuestNotStarted, self.snapshot)
        self.assertIn('max_image_mib', error.format_message())
        self.glance.update.assert_not_called()

    def test_an_image_that_is_gone(self):
        self.glance.get.side_effect = nova_exception.ImageNotFound(
            image_id=base.IMAGE)
        self.assertRaises(nova_exception.ImageNotFound, self.snapshot)


class CacheImageTest(base.DriverTestCase):

    def cache(self):
        return self.driver.cache_image(mock.sentinel.context, base.IMAGE)

    def test_a_xen_host_gets_it_once(self):
        self.cosmosd.host_kind = 'xen'
        engine = b'engine'
        self.glance.get.return_value = {
            'os_hash_algo': 'sha256', 'size': len(engine),
            'os_hash_value': hashlib.sha256(engine).hexdigest()}
        self.glance.download.side_effect = lambda *_: iter((engine,))
        self.assertTrue(self.cache())
        self.assertEqual([engine], list(self.cosmosd.images.values()))
        self.assertFalse(self.cache())

    def test_a_process_host_has_its_engine_only(self):
        self.assertFalse(self.cache())
        self.cosmosd.engine_sha256 = '00' * 32
        self.assertRaises(exception.GuestNotStarted, self.cache)


class GuestTest(base.DriverTestCase):

    def setUp(self):
        super().setUp()
        self.server = base.instance()
        self.spawn(self.server)

    def state(self):
        return self.driver.get_info(self.server).state

    def test_lists(self):
        self.assertEqual([base.UUID], self.driver.list_instance_uuids())
        self.assertEqual(['fw'], self.driver.list_instances())
        self.assertEqual(1, self.driver.get_num_instances())
        self.assertTrue(self.driver.instance_exists(self.server))

    def test_states(self):
        for state, expected in (('running', power_state.RUNNING),
                                ('error', power_state.SHUTDOWN),
                                ('paused', power_state.PAUSED),
                                ('crashed', power_state.SHUTDOWN),
                                ('of a later release', power_state.NOSTATE)):
            self.cosmosd.guests[base.UUID]['state'] = state
            self.assertEqual(expected, self.state())

    def test_missing_guest_is_off(self):
        self.cosmosd.guests = {}
        self.assertEqual(power_state.SHUTDOWN, self.state())

    def test_state_unknown_while_cosmosd_is_away(self):
        self.cosmosd.stop()
        self.assertRaises(exception.CosmosdUnavailable, self.state)

    def test_destroy_twice(self):
        for method in (self.driver.destroy, self.driver.cleanup):
            method(None, self.server, base.network_info())
            self.assertEqual({}, self.cosmosd.guests)

    def test_destroy_fails(self):
        self.cosmosd.faults['destroy'] = ('store', 'quota')
        for method in (self.driver.destroy, self.driver.cleanup):
            error = self.assertRaises(exception.CosmosdRefused, method, None,
                                      self.server, None)
            self.assertIn('quota', error.format_message())

    def test_power_off(self):
        self.driver.power_off(self.server)
        self.assertEqual({}, self.cosmosd.guests)
        self.driver.power_off(self.server)

    def test_power_off_keeps_a_crash_for_the_console(self):
        self.cosmosd.crash(base.UUID, 'killed')
        self.driver.power_off(self.server)
        self.assertIn(b'engine ready',
                      self.driver.get_console_output(None, self.server))

    def test_power_off_fails(self):
        for verb in ('info', 'destroy'):
            self.cosmosd.faults = {verb: ('internal', 'why')}
            self.assertRaises(exception.CosmosdRefused,
                              self.driver.power_off, self.server)

    def test_pause_and_unpause(self):
        self.driver.pause(self.server)
        self.assertEqual(power_state.PAUSED, self.state())
        self.driver.unpause(self.server)
        self.assertEqual(power_state.RUNNING, self.state())

    def test_pause_without_a_guest(self):
        self.cosmosd.guests = {}
        for method in (self.driver.pause, self.driver.unpause):
            self.assertRaises(nova_exception.InstanceNotFound, method,
                              self.server)

    def test_console_is_ascii(self):
        self.assertEqual(
            b'engine ready\n\\u20ac',
            self.driver.get_console_output(None, self.server))

    def test_console_of_a_stopped_server(self):
        self.cosmosd.guests = {}
        self.assertRaises(nova_exception.ConsoleNotAvailable,
                          self.driver.get_console_output, None, self.server)

    def test_there_is_no_crash_dump(self):
        self.assertRaises(nova_exception.TriggerCrashDumpNotSupported,
                          self.driver.trigger_crash_dump, self.server)

    def test_plugging_is_cosmosds(self):
        before = self.cosmosd.verbs()
        self.driver.plug_vifs(self.server, base.network_info())
        self.driver.unplug_vifs(self.server, base.network_info())
        self.assertEqual(before, self.cosmosd.verbs())


class EventTest(base.DriverTestCase):
    """A dead guest becomes a lifecycle event that Nova believes."""

    def setUp(self):
        super().setUp()
        self.found = self.useFixture(fixtures.MockPatchObject(
            driver.availability.Availability, 'found', autospec=True)).mock
        self.server = base.instance()
        self.spawn(self.server)
        self.events = threading.Semaphore(0)
        self.seen = []

    def listen(self):
        self.addCleanup(self.driver.cleanup_host, 'compute1')
        self.driver.register_event_listener(self._record)

    def _record(self, event):
        # As Nova does: the event counts only if get_info agrees with it.
        state = self.driver.get_info(self.server).state
        self.seen.append((event.get_instance_uuid(), event.get_transition(),
                          state))
        self.events.release()

    def died_once(self):
        self.assertTrue(self.events.acquire(timeout=60))
        self.assertEqual(
            [(base.UUID, virtevent.EVENT_LIFECYCLE_STOPPED,
              power_state.SHUTDOWN)], self.seen)

    def test_death_is_seen_at_once(self):
        self.listen()
        self._wait_for_subscription()
        self.cosmosd.crash(base.UUID, 'killed')
        self.died_once()
        self.found.assert_called_once()

    def _wait_for_subscription(self):
        for _ in range(6000):
            if 'list' in self.cosmosd.verbs():
                return
            threading.Event().wait(0.01)
        self.fail('no subscription')

    def test_death_before_the_subscription(self):
        self.cosmosd.crash(base.UUID, 'killed', tell=False)
        self.listen()
        self.died_once()

    def test_nova_starts_again_what_ended_before_it_started(self):
        self.resume()
        self.cosmosd.crash(base.UUID, 'the host went down', tell=False)
        self.listen()
        self._wait_for_faults()
        self.driver.cleanup_host('compute1')    # waits for the thread
        self.assertEqual([], self.seen)

    def test_deaths_while_cosmosd_was_away_are_news(self):
        self.resume()
        self.listen()
        self._wait_for_faults()
        self.cosmosd.crash(base.UUID, 'killed', tell=False)
        self.driver._connected()        # as after the next subscription
        self.died_once()

    def resume(self):
        driver.CONF.set_override('resume_guests_state_on_host_boot', True)
        self.addCleanup(driver.CONF.clear_override,
                        'resume_guests_state_on_host_boot')

    def _wait_for_faults(self):
        """Wait until the first subscription was answered."""
        for _ in range(6000):
            if self.found.called:
                return
            threading.Event().wait(0.01)
        self.fail('no subscription')

    def test_guest_that_cosmosd_found_in_error(self):
        self.cosmosd.guests[base.UUID].update(state='error',
                                              reason='its port is gone')
        self.listen()
        self.died_once()
        self.driver.power_off(self.server)
        self.assertEqual({}, self.cosmosd.guests)

    def test_nova_stops_listening(self):
        """Nova withdraws its callback before cleanup_host()."""
        self.listen()
        self._wait_for_subscription()
        self.driver.register_event_listener(None)
        self.assertFalse(self.driver._events._thread.is_alive())

    def test_cleanup_without_listener(self):
        self.driver.cleanup_host('compute1')

    def test_no_guests_for_a_host_whose_switch_is_gone(self):
        fault = {'part': 'valed', 'reason': 'connection refused'}
        self.cosmosd.host_faults = [fault]
        reasons = queue.Queue()
        with mock.patch.object(driver.availability.Availability, 'lost',
                               lambda _, reason: reasons.put(reason)):
            self.driver = driver.ClickOSDriver(self.virtapi)
            self.listen()
            self.assertEqual('valed does not answer: connection refused',
                             reasons.get(timeout=60))
            self.found.assert_not_called()
            self.cosmosd.send('host', faults=[])
            self.cosmosd.send('host', faults=[fault])
            reasons.get(timeout=60)
            self.found.assert_called_once()
            self.driver.cleanup_host('compute1')

    def test_a_fault_of_a_folder_has_the_words_of_the_system(self):
        why = 'state_dir: No space left on device (os error 28)'
        away = 'connection refused'
        with mock.patch.object(driver.availability.Availability,
                               'lost') as lost:
            self.driver._faults([{'part': 'state_dir', 'reason': why},
                                 {'part': 'valed', 'reason': away}])
        lost.assert_called_once_with(
            why + '; valed does not answer: ' + away)
        self.driver._faults([])
        self.found.assert_called_once()

    def test_loss_reaches_the_compute_service(self):
        lost = threading.Event()
        with mock.patch.object(driver.availability.Availability, 'lost',
                               lambda _, reason: lost.set()):
            self.driver = driver.ClickOSDriver(self.virtapi)
            self.listen()
            self._wait_for_subscription()
            self.cosmosd.stop()
            self.assertTrue(lost.wait(60))
            self.driver.cleanup_host('compute1')
