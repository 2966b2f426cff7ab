# SPDX-License-Identifier: Apache-2.0
"""The compute driver: Nova's methods, each a few calls of its parts."""

import contextlib
import dataclasses
import functools

from nova.compute import task_states
from nova import context as nova_context
from nova import exception as nova_exception
from nova import objects
from nova.virt import driver
from nova.virt import event as virtevent
from oslo_log import log as logging
from oslo_utils import excutils

from nova_clickos import availability
from nova_clickos import beside
from nova_clickos import boot
from nova_clickos.conf import CONF
from nova_clickos import console
from nova_clickos import deletions
from nova_clickos import desired_state
from nova_clickos import device_tags
from nova_clickos import diagnostics
from nova_clickos import diskless
from nova_clickos import events
from nova_clickos import exception
from nova_clickos import guest
from nova_clickos import host as hosts
from nova_clickos import image
from nova_clickos import kernel
from nova_clickos.migration import operations
from nova_clickos import named_ports
from nova_clickos import patience
from nova_clickos import userdata
from nova_clickos import vif as vifs
from nova_clickos import wiring

LOG = logging.getLogger(__name__)

#: The image a server was created from, kept for its next start.
_SHA256_KEY = 'clickos_image_sha256'
#: tacker_clickos looks for it (docs/interfaces.md).
_START_EVENT = 'clickos_start'
#: The fault of a host whose folders take no files.
_STATE_DIR = 'state_dir'
#: Starts of a guest whose desired state changes each time.
_STARTS = 5
_NO_VOLUME = 'a ClickOS guest has no disk: no volume is possible'


class ClickOSDriver(driver.ComputeDriver):
    """Runs ClickOS guests through cosmosd.

    The configuration comes as user_data. A guest exists only while it runs:
    what a stopped server needs to start again is in Nova, Neutron and
    clickos-api.
    """

    capabilities = dict(driver.ComputeDriver.capabilities,
                        supports_attach_interface=True,
                        supports_device_tagging=True,
                        supports_evacuate=True,
                        supports_image_type_raw=True,
                        supports_tagged_attach_interface=True)

    def __init__(self, virtapi):
        super().__init__(virtapi)
        client = patience.PatientClient(CONF.clickos.cosmosd_socket,
                                        CONF.clickos.cosmosd_timeout)
        self._host = hosts.Host(client)
        self._guests = guest.Guests(client)
        self._console = console.Console(self._guests)
        self._images = image.Images(client)
        self._migration = operations.LiveMigration(client, self._guests)
        self._desired_state = desired_state.DesiredState()
        self._wiring = wiring.Wiring(virtapi)
        self._availability = availability.Availability(virtapi)
        self._events = events.EventFollower(
            client, on_died=self._on_guest_died,
            on_connected=self._on_cosmosd_connected,
            on_lost=self._availability.lost,
            on_faults=self._faults, on_guest=beside.follow)
        self._deletions = deletions.Deletions()
        self._boot = boot.Patience()
        self._skips_deaths = False

    def init_host(self, host):
        """Check that cosmosd is there and of an accepted kind.

        :raises: CosmosdUnavailable, InvalidConfiguration: nova-compute ends.
        """
        # With [scheduler] query_placement_for_image_type_support Nova then
        # looks for a Xen host for a kernel.
        self.capabilities = dict(
            self.capabilities,
            supports_image_type_aki=self._host.check() != hosts.PROCESS)
        self._end_unfinished(host)
        self._deletions.start()

    def _end_unfinished(self, host):
        """End guests whose first start nova-compute did not survive.

        Nova puts their servers into ERROR and asks no driver to end them.
        """
        servers = {instance.uuid: instance for instance in
                   objects.InstanceList.get_by_host(
                       nova_context.get_admin_context(), host)}
        self._console.keep_only(servers.keys())
        unfinished = {uuid: instance for uuid, instance in servers.items()
                      if instance.launched_at is None}
        for uuid in unfinished.keys() & {
                found['uuid'] for found in self._guests.list()}:
            LOG.warning('The guest started while nova-compute ended; it ends',
                        instance_uuid=uuid)
            self._guests.destroy(unfinished[uuid])

    def cleanup_host(self, host):
        """Stop following events and deletions."""
        self._events.stop()
        self._deletions.stop()

    def register_event_listener(self, callback):
        """Follow cosmosd's events as soon as Nova wants them.

        :param callback: None ends that: nova-compute is about to end.

        Nova does not call this if ``[workarounds]
        handle_virt_lifecycle_events`` is off. Then only the periodic task
        sees a dead guest, and the service stays enabled without cosmosd.
        """
        super().register_event_listener(callback)
        # Nova starts again by itself what ended before it started.
        self._skips_deaths = CONF.resume_guests_state_on_host_boot
        if callback is None:
            self._events.stop()
        else:
            self._events.start()

    def _on_cosmosd_connected(self):
        skips_deaths, self._skips_deaths = self._skips_deaths, False
        self._faults(self._host.info()['faults'])
        guests = self._guests.list()
        if not skips_deaths:    # an event would stop what Nova starts now
            for found in guests:
                if found['state'] in guest.DOWN:
                    self._on_guest_died(found['uuid'], found.get('reason'))
        beside.follow_all(guests)

    def _faults(self, faults):
        """Serve no new guests while the host has a fault."""
        if faults:
            self._availability.lost('; '.join(map(_shown, faults)))
        else:
            self._availability.found()

    def _on_guest_died(self, uuid, reason):
        LOG.warning('Guest is down: %s', reason, instance_uuid=uuid)
        self.emit_event(virtevent.LifecycleEvent(
            uuid, virtevent.EVENT_LIFECYCLE_STOPPED))

    def list_instances(self):
        """:returns: names for people, crashed guests included"""
        return [found['name'] for found in self._guests.list()]

    def list_instance_uuids(self):
        """:returns: UUIDs, crashed guests included"""
        return [found['uuid'] for found in self._guests.list()]

    def get_info(self, instance, use_cache=True):
        """A crashed or missing guest is SHUTDOWN, so that it can be started.

        :raises: CosmosdUnavailable; nothing is known then
        """
        return self._guests.info(instance)

    def prepare_for_spawn(self, instance):
        """Refuse volumes before Nova asks Cinder for them.

        :raises: UnacceptableServer
        """
        if not instance.image_ref or diskless.volumes(instance):
            raise exception.UnacceptableServer(
                reason=_NO_VOLUME + '; use the ClickOS image')

    def get_device_name_for_instance(self, instance, bdms, block_device_obj):
        """Refuse to attach a volume before Nova calls Cinder.

        :raises: InvalidVolume; the API of Nova answers 400. For other
            devices NotImplementedError: Nova finds a name by itself
        """
        if block_device_obj.is_volume:
            raise nova_exception.InvalidVolume(reason=_NO_VOLUME)
        raise NotImplementedError()

    def spawn(self, context, instance, image_meta, injected_files,
              admin_password, allocations, network_info=None,
              block_device_info=None, power_on=True, accel_info=None):
        """Check the image and start the guest.

        A rebuild comes here too; it keeps the desired state as every later
        start does.

        :raises: GuestNotStarted with the guest's own message, HostCannotStart
        """
        diskless.refuse_disks(block_device_info)
        diskless.refuse_files(instance, injected_files)
        info = self._host.info()
        kernel.check(instance, info)
        instance.system_metadata[_SHA256_KEY] = self._images.require(
            context, instance.image_ref, info)
        kernel.require_ramdisk(context, instance, self._images, info)
        userdata.adopt(instance, functools.partial(
            self._images.property, context, instance.image_ref))
        if power_on:
            start = (self._start if _keeps_ports(instance)
                     else self._start_and_wait)
            start(context, instance, network_info,
                  first=instance.launched_at is None)

    def _start(self, context, instance, network_info, first=False):
        """Start a guest, and note it if this host cannot."""
        with _recording_start_failure(context, instance):
            self._make(context, instance, network_info, first)

    def _make(self, context, instance, network_info, first=False):
        """Gather all a guest needs, and only then touch what runs.

        The guest forwards after clickos-api has confirmed that no newer
        change exists; else it starts again with that change.
        """
        with self._console.starting(instance, first) as story:
            for _attempt in range(_STARTS):
                needs = self._start_arguments(context, instance,
                                              network_info, first)
                story[:] = console.describe(instance, needs, network_info)
                if self._guests.start(instance, *needs):
                    return
            raise exception.GuestNotStarted(
                reason='the desired state changed in each of %d starts; try '
                       'again' % _STARTS)

    def _start_and_wait(self, context, instance, network_info, first=False):
        """Start a guest whose ports are new here; Neutron calls them active.

        :raises: VirtualInterfaceCreateException, as ``[DEFAULT]
            vif_plugging_is_fatal`` says; the guest is gone then
        """
        with self._wiring.awaited(instance, network_info,
                                  undo=self._guests.destroy):
            self._start(context, instance, network_info, first)

    def _desired_configuration(self, instance, first):
        """Return configuration, its newest change, and how to confirm it.

        A rescued guest has a minimal configuration. Its state and number are
        the server's, so a new configuration reaches it.
        """
        configuration, *more = self._own_configuration(instance, first)
        if userdata.is_rescued(instance):
            configuration = userdata.RESCUE
        return configuration, *more

    def _own_configuration(self, instance, first):
        state_id = userdata.state_of(instance)
        if state_id:
            desired = self._desired_state.fetch_state(state_id,
                                                      instance.project_id)
            configuration = desired.configuration.updated(desired.writes)
        else:
            configuration = userdata.of_instance(instance)
            if first:
                return configuration, 0, None
            desired = self._desired_state.fetch(instance.uuid,
                                                instance.project_id)
            configuration = desired.onto(configuration, instance.user_data)
        configuration = dataclasses.replace(configuration,
                                            secrets=desired.secrets)
        return configuration, desired.number, functools.partial(
            self._desired_state.confirm, state_id or instance.uuid, instance,
            desired)

    def _start_arguments(self, context, instance, network_info, first=False):
        """Return what Guests.start() needs besides the instance."""
        tags = device_tags.note(context, instance)
        configuration, *more = (
            kernel.needs(instance, network_info, tags)
            if kernel.is_kernel(instance)
            else self._desired_configuration(instance, first))
        devices = vifs.from_network_info(network_info)
        configuration = named_ports.define(configuration, network_info,
                                           instance.metadata, tags)
        sha256 = instance.system_metadata.get(_SHA256_KEY)
        if sha256 is None:
            raise exception.GuestNotStarted(
                reason='the server was not created by this driver; rebuild '
                       'it from the ClickOS image')
        info = self._host.info()
        # Room for the RAM disk may have cost the kernel its own.
        for _ in range(2):
            self._images.provide(context, instance.image_ref, sha256, info)
            if not kernel.provide_ramdisk(context, instance, self._images,
                                          info):
                break
        return sha256, devices, configuration, *more

    def destroy(self, context, instance, network_info, block_device_info=None,
                destroy_disks=True, destroy_secrets=True):
        """Remove the guest and its switch ports; may be called twice."""
        self._remove(instance)

    def _remove(self, instance):
        self._guests.destroy(instance)
        self._console.remove(instance)

    def cleanup(self, context, instance, network_info, block_device_info=None,
                destroy_disks=True, migrate_data=None, destroy_vifs=True,
                destroy_secrets=True):
        """Remove what destroy() would; may be called twice."""
        self._remove(instance)

    def power_on(self, context, instance, network_info,
                 block_device_info=None, accel_info=None, share_info=None):
        """Start the guest with its configuration and desired state."""
        self._start(context, instance, network_info)

    def power_off(self, instance, timeout=0, retry_interval=0):
        """Stop the guest at once: it has nothing to shut down."""
        with self._console.ending(instance, 'stop'):
            self._guests.power_off(instance)

    def reboot(self, context, instance, network_info, reboot_type,
               block_device_info=None, bad_volumes_callback=None,
               accel_info=None, share_info=None):
        """Start the guest again, soft and hard alike.

        While desired state, user_data or ports cannot be had, the running
        guest is left alone. Nova then keeps the server ACTIVE, and calls the
        reboot a success. So the outcome is an event of the action.
        """
        with _noted(context, instance):
            self._make(context, instance, network_info)

    def resume_state_on_host_boot(self, context, instance, network_info,
                                  share_info, block_device_info=None):
        """Start a guest that ran before the host went down.

        Services that boot later than this host may be unavailable at first.
        """
        self._boot.repeat(
            functools.partial(self._start, context, instance, network_info),
            instance)

    def pause(self, instance):
        """Stop the guest's processor time."""
        self._guests.pause(instance)

    def unpause(self, instance):
        """Let a paused guest go on."""
        self._guests.unpause(instance)

    def suspend(self, context, instance):
        """Save a guest on a Xen host; on a process host pause it in memory.

        :raises: InstanceFaultRollback: Nova calls the server active, and the
            tenant may suspend it again
        """
        with exception.rolled_back():
            self._guests.suspend(instance)

    def resume(self, context, instance, network_info, block_device_info=None,
               share_info=None):
        """Let a suspended guest go on.

        A guest that ended meanwhile starts again, as power_on() starts it.

        :raises: InstanceFaultRollback: the server stays suspended
        """
        with exception.rolled_back():
            if not self._guests.resume(instance):
                LOG.warning('The suspended guest is gone; starting it again',
                            instance=instance)
                self._start(context, instance, network_info)

    def rescue(self, context, instance, network_info, image_meta,
               rescue_password, block_device_info, share_info):
        """Start the guest with a configuration that does nothing.

        It has the server's own image, whatever image the request names, and
        all interfaces. A Linux guest starts as it always does.
        """
        self._start(context, instance, network_info)

    def unrescue(self, context, instance):
        """Start the guest with its configuration and desired state."""
        self._start(context, instance, instance.get_network_info())

    def get_host_ip_addr(self):
        """:returns: the address that Nova notes for a migration's target"""
        return CONF.my_ip

    def migrate_disk_and_power_off(self, context, instance, dest, flavor,
                                   network_info, block_device_info=None,
                                   timeout=0, retry_interval=0):
        """End the guest: a resize and a cold migration start another one.

        :returns: empty, because a guest has no disk
        :raises: InstanceFaultRollback if the guest could not start again;
            nothing is touched then
        """
        with exception.rolled_back():
            diskless.refuse_flavor(flavor)
            kernel.check_resize(instance, flavor)
            diskless.refuse_disks(block_device_info)
            self._start_arguments(context, instance, network_info)
        with self._console.ending(instance, 'stop: another guest starts'):
            self._guests.destroy(instance)
        return ''

    def finish_migration(self, context, migration, instance, disk_info,
                         network_info, image_meta, resize_instance,
                         allocations, block_device_info=None, power_on=True,
                         share_info=None):
        """Start the guest on this host, with the flavor it has now.

        :raises: GuestNotStarted, HostCannotStart or CosmosdUnavailable; then
            a hard reboot starts it as soon as the host can
        """
        if power_on:
            self._start_and_wait(context, instance, network_info)

    def confirm_migration(self, context, migration, instance, network_info):
        """Remove what may be left on the old host; may be called twice."""
        if migration.source_compute != migration.dest_compute:
            self._remove(instance)

    def finish_revert_migration(self, context, instance, network_info,
                                migration, block_device_info=None,
                                power_on=True, share_info=None):
        """Start the guest on its old host, with its old flavor."""
        if power_on:
            self._start(context, instance, network_info)

    def get_console_output(self, context, instance):
        """:returns: the end of the console log, a stopped server's too"""
        return self._console.read(instance)

    def get_diagnostics(self, instance):
        """:returns: dict of plain values, for older microversions"""
        return diagnostics.flat(*self._diagnostics_input(instance))

    def get_instance_diagnostics(self, instance):
        """:returns: Diagnostics of Nova"""
        return diagnostics.versioned(*self._diagnostics_input(instance))

    def _diagnostics_input(self, instance):
        return (*self._guests.counted(instance),
                self._host.info()['host_kind'])

    def snapshot(self, context, instance, image_id, update_task_state):
        """Copy the server's image, with configuration and values.

        A guest has no disk to be copied. A shelved server keeps both in Nova
        and clickos-api.

        :raises: GuestNotStarted for a configuration that does not fit
        """
        properties = {}
        if instance.task_state != task_states.SHELVING \
                and not kernel.is_kernel(instance):
            properties = userdata.for_image(
                self._own_configuration(instance, first=False)[0])
        update_task_state(task_state=task_states.IMAGE_PENDING_UPLOAD)
        update_task_state(task_state=task_states.IMAGE_UPLOADING,
                          expected_state=task_states.IMAGE_PENDING_UPLOAD)
        self._images.copy(context, instance.image_ref, image_id, properties)

    def check_can_live_migrate_destination(
            self, context, instance, src_compute_info, dst_compute_info,
            block_migration=False, disk_over_commit=False):
        """Check that this host can take a guest that runs.

        :raises: MigrationPreCheckError; the server is left as it is
        """
        if kernel.is_kernel(instance):
            raise nova_exception.MigrationPreCheckError(
                reason='only a guest of Click moves while it runs; use a '
                       'cold migration')
        return self._migration.check_target(
            instance.system_metadata.get(_SHA256_KEY),
            src_compute_info['hypervisor_type'], self._host.info())

    def cleanup_live_migration_destination_check(self, context,
                                                 dest_check_data):
        """Nothing to do: the check makes nothing."""

    def check_can_live_migrate_source(self, context, instance,
                                      dest_check_data,
                                      block_device_info=None):
        """Check that the guest runs.

        :raises: MigrationPreCheckError, InstanceNotFound
        """
        with exception.translated('read the guest', instance):
            return self._migration.check_source(instance, dest_check_data)

    def pre_live_migration(self, context, instance, block_device_info,
                           network_info, disk_info, migrate_data):
        """Make the guest here, with the ports that Neutron has bound here.

        :raises: MigrationError; nothing is left then
        """
        sha256 = instance.system_metadata.get(_SHA256_KEY)
        try:
            self._images.provide(context, instance.image_ref, sha256,
                                 self._host.info())
        except nova_exception.NovaException as e:
            raise nova_exception.MigrationError(reason=e.format_message())
        return self._migration.prepare(instance, sha256, migrate_data)

    def live_migration(self, context, instance, dest, post_method,
                       recover_method, block_migration=False,
                       migrate_data=None):
        """Move the guest with its configuration, values and tables.

        :raises: MigrationError if it may run on either host
        """
        status = self._migration.move(instance, migrate_data)
        if status is None:
            post_method(context, instance, dest, block_migration,
                        migrate_data)
        else:
            recover_method(context, instance, dest, migrate_data,
                           migration_status=status)

    def live_migration_abort(self, instance):
        """Let a guest stay whose migration is under way and not committed.

        :raises: MigrationError
        """
        self._migration.abort(instance)

    def live_migration_force_complete(self, instance):
        """Nothing to do: the guest halts once, whatever passes it."""
        LOG.info('The migration completes without being forced',
                 instance=instance)

    def post_live_migration(self, context, instance, block_device_info,
                            migrate_data=None):
        """Nothing to do: the guest is gone from its old host."""

    def post_live_migration_at_source(self, context, instance, network_info):
        """Remove the log: its ports are gone, too."""
        self._console.remove(instance)

    def post_live_migration_at_destination(self, context, instance,
                                           network_info,
                                           block_migration=False,
                                           block_device_info=None):
        """Forget what the arrival needed, and begin the log."""
        self._migration.arrived(instance)
        self._console.note(instance, 'live migration: the guest runs here',
                           begins=True)

    def rollback_live_migration_at_destination(
            self, context, instance, network_info, block_device_info,
            destroy_disks=True, migrate_data=None):
        """Remove a guest that stays on its host."""
        self._migration.undo(instance)

    def cache_image(self, context, image_id):
        """Give a Xen host an image before a server needs it.

        A process host has its engine; another image is refused.

        :returns: False if the host has the image already
        """
        info = self._host.info()
        sha256 = self._images.require(context, image_id, info)
        return self._images.provide(context, image_id, sha256, info)

    def plug_vifs(self, instance, network_info):
        """Nothing to do: cosmosd plugs when it starts a guest."""

    def unplug_vifs(self, instance, network_info):
        """Nothing to do: cosmosd unplugs when it destroys a guest."""

    def attach_interface(self, context, instance, image_meta, vif):
        """Give a running guest an interface: its next device.

        :raises: CosmosdRefused, CosmosdUnavailable, GuestNotStarted; the
            guest is as it was
        """
        device_tags.note(context, instance)
        self._guests.attach(instance, vifs.of_new_port(vif))
        self._console.note(instance, 'attach: ' + console.device_text(vif))

    def detach_interface(self, context, instance, vif):
        """Take an interface from a guest; Nova forgets its tag.

        :raises: CosmosdRefused, CosmosdUnavailable
        """
        self._guests.detach(instance, vif['id'])
        self._console.note(instance, 'detach: ' + console.device_text(vif))

    def trigger_crash_dump(self, instance):
        """Refuse: a guest has no kernel that could dump itself."""
        raise nova_exception.TriggerCrashDumpNotSupported()

    def get_available_nodes(self, refresh=False):
        """:returns: the one node of this host"""
        return [CONF.host]

    def get_available_resource(self, nodename):
        """:raises: CosmosdUnavailable; Nova keeps the last figures"""
        return self._host.resources(nodename)

    def update_provider_tree(self, provider_tree, nodename, allocations=None):
        """Tell placement what guests may use, and what runs them."""
        known = provider_tree.data(nodename)
        provider_tree.update_inventory(
            nodename,
            self._host.inventory(self._get_allocation_ratios(known.inventory)))
        provider_tree.update_traits(nodename,
                                    self._host.traits(known.traits))

    def get_host_uptime(self):
        """:returns: how long cosmosd has been up, as text"""
        return 'cosmosd is up %d s' % self._host.info()['uptime_s']


def _shown(fault):
    """Return a fault of cosmosd's verb ``host`` as text.

    The reason of a folder's fault names the folder.
    """
    if fault['part'] == _STATE_DIR:
        return fault['reason']
    return '%(part)s does not answer: %(reason)s' % fault


def _keeps_ports(instance):
    """Return whether a rebuild starts a guest on the host where it ran.

    Its ports send no event if they stay active, and Nova gives a copy of
    their status that may be old.
    """
    return (instance.task_state == task_states.REBUILD_SPAWNING
            and instance.host == CONF.host)


@contextlib.contextmanager
def _recording_start_failure(context, instance):
    """Note it if the host cannot start the guest."""
    try:
        yield
    except exception.HostCannotStart as e:
        _record_start_failure(context, instance, e)
        raise


@contextlib.contextmanager
def _noted(context, instance):
    """Note the outcome of a start, whatever it is."""
    try:
        yield
    except Exception as e:
        with excutils.save_and_reraise_exception():
            _record_start_failure(context, instance, e)
    _record_start_failure(context, instance)


def _record_start_failure(context, instance, error=None):
    """Note the outcome of a start as an event of the action.

    Nova says of a failed build only that no host is left to try. A lost note
    fails no start.

    :param error: why the host did not start the guest, or None
    """
    event = objects.InstanceActionEvent
    try:
        event.event_start(context, instance.uuid, _START_EVENT,
                          want_result=False, host=CONF.host)
        event.event_finish_with_failure(
            context, instance.uuid, _START_EVENT,
            exc_val=error and exception.for_tenants(error),
            exc_tb=error and error.__traceback__, want_result=False)
    except Exception as e:
        LOG.warning('The outcome of a start is not noted: %s: %s',
                    error or 'the guest runs', e, instance=instance)
