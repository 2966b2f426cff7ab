# SPDX-License-Identifier: Apache-2.0
"""The driver's methods against a cosmosd double behind a real socket."""

import hashlib
import importlib.metadata
import inspect
import os
import queue
import threading
from unittest import mock

import fixtures
from nova.compute import power_state
from nova import exception as nova_exception
from nova.virt import driver as nova_driver
from nova.virt import event as virtevent

import nova
from nova_clickos import driver
from nova_clickos import exception
from tests.unit.nova_clickos import base

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
        for trait in ('NET_ATTACH_INTERFACE', 'DEVICE_TAGGING',
                      'NET_ATTACH_INTERFACE_WITH_TAG'):
            self.assertTrue(traits['COMPUTE_' + trait], trait)


def _public_methods(cls):
    return {name: method for name, method
            in inspect.getmembers(cls, inspect.isfunction)
            if not name.startswith('_')}


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
        # As after the next subscription.
        self.driver._on_cosmosd_connected()
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
