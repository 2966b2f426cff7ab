# SPDX-License-Identifier: Apache-2.0
"""Guests: start, stop, state, console."""

import time

from clickos_client import host_text
from clickos_client import secrets
from clickos_client import vnf
from cosmos_client import CosmosError
from nova.compute import power_state
from nova.compute import task_states
from nova.compute import vm_states
from nova import exception as nova_exception
from nova.virt import hardware
from oslo_log import log as logging
from oslo_utils import excutils

from nova_clickos.conf import CONF
from nova_clickos import exception
from nova_clickos import host
from nova_clickos import patience

LOG = logging.getLogger(__name__)

MAX_CONSOLE_BYTES = 100 * 1024
#: cosmosd's limit on the name of a guest.
_NAME_BYTES = 255
#: The driver polls this often for rules of a new guest's ports, 4 s at least.
OPEN_LOOKS = 80
OPEN_PAUSE_S = 0.05
CRASHED = 'crashed'
PAUSED = 'paused'
SAVED = 'saved'
#: It forwards, and hears of no change; Nova has no such state.
UNREACHABLE = 'unreachable'
#: States in which a guest forwards nothing; "error" is one that cosmosd lost
#: a part of, say its switch port.
DOWN = frozenset((CRASHED, 'error'))
# Nova follows a guest that stopped by itself only to SHUTDOWN at once: its
# lifecycle events know no crash. It then stops the server, which the tenant
# can start again.
_POWER_STATES = {
    'running': power_state.RUNNING,
    PAUSED: power_state.PAUSED,
    UNREACHABLE: power_state.NOSTATE,
    **{state: power_state.SHUTDOWN for state in DOWN},
}


class Guests:
    """The guests of this host, by instance."""

    def __init__(self, client):
        self._client = client

    def start(self, instance, image_sha256, vifs, configuration, number=0,
              confirm=None, kernel=None):
        """Make a guest that forwards, or leave nothing behind.

        It takes the place of the guest of an earlier run. The earlier guest
        runs on if this host cannot make another.

        :param image_sha256: of the image the server was created from.
        :param vifs: from vif.from_network_info().
        :param configuration: document.Configuration of clickos_client
        :param number: the newest change that the configuration has.
        :param confirm: called with the guest's incarnation before the guest
            forwards; if it answers False, the guest is removed again.
        :param kernel: from kernel.needs(), if the image is no Click.
        :returns: False if confirm did
        :raises: GuestNotStarted, HostCannotStart or CosmosdUnavailable
        """
        try:
            made = self._make(instance, image_sha256, vifs, configuration,
                              number, confirm is not None, kernel)
            if confirm and not self._confirmed(instance, made, confirm):
                return False
        except CosmosError as e:
            if configuration.secrets.values:
                e.message = secrets.shown(e.code, e.message)
            raise exception.from_start(e)
        except secrets.TooLong as e:
            raise exception.GuestNotStarted(reason=str(e))
        domid = made['domid']
        if any(vif.get('filtered') for vif in vifs):
            self.await_rules(instance)
        LOG.info('Guest started as domain %s', domid, instance=instance)
        return True

    def _confirmed(self, instance, made, confirm):
        """Let the guest forward if its state is still the newest."""
        try:
            is_newest = confirm(made['incarnation'])
            if is_newest:
                self._client.call('release', uuid=instance.uuid)
        except Exception:
            with excutils.save_and_reraise_exception():
                self._undo(instance)
        if not is_newest:
            self._undo(instance)
        return is_newest

    def _make(self, instance, *needs):
        """Make a guest in place of an earlier one.

        If cosmosd went away meanwhile, undoing it has waited for cosmosd.
        """
        try:
            return self._create(instance, *needs)
        except CosmosError as e:
            if e.code != patience.AWAY:
                raise
            LOG.info('The guest starts again, since cosmosd restarted: %s', e,
                     instance=instance)
        return self._create(instance, *needs)

    def _create(self, instance, image_sha256, vifs, configuration, number,
                hold, kernel):
        try:
            return self._client.call(
                'create', uuid=instance.uuid, name=_name(instance),
                image_sha256=image_sha256,
                memory_mib=instance.flavor.memory_mb, vifs=vifs,
                config=configuration.config,
                config_name=configuration.config_name,
                writes=configuration.secrets.resolved(configuration.writes),
                timeout_ms=CONF.clickos.create_timeout * 1000, number=number,
                hold=hold, replace=True,
                has_secrets=bool(configuration.secrets.values),
                **({'kernel': kernel} if kernel else {}),
                **host.vcpus(self._client, instance.flavor))
        except CosmosError as e:
            # cosmosd undoes a failed create; but if only its answer got
            # lost, the guest is there.
            with excutils.save_and_reraise_exception():
                if e.code in exception.LOST:
                    self._undo_lost(instance, hold)

    def await_rules(self, instance):
        """Wait until clickos-agent has opened the guest's ports.

        Without the agent or Neutron the guest runs with closed ports: its
        tenant may still read and write handlers.
        """
        for _look in range(OPEN_LOOKS):
            try:
                ports = self._client.call('vif-list',
                                          uuid=instance.uuid)['ports']
            except CosmosError as e:
                LOG.warning('The ports of the guest are not known: %s', e,
                            instance=instance)
                return
            if not any(port['closed'] for port in ports):
                return
            time.sleep(OPEN_PAUSE_S)
        LOG.warning('A port of the guest has no rules yet and forwards '
                    'nothing', instance=instance)

    def _undo_lost(self, instance, hold):
        """Remove a guest that a lost answer may have been about.

        A guest whose ports came up is an earlier one, and forwards.
        """
        try:
            if hold and not self._client.call('info',
                                              uuid=instance.uuid).get('held'):
                return
        except CosmosError as e:
            LOG.debug('The guest is not known: %s', e, instance=instance)
        self._undo(instance)

    def _undo(self, instance):
        try:
            self._client.call('destroy', uuid=instance.uuid)
        except CosmosError as e:
            LOG.warning('Nothing may be left of a guest that did not start, '
                        'but cosmosd cannot confirm it: %s', e,
                        instance=instance)

    def destroy(self, instance):
        """Remove a guest, running or not; may be called twice."""
        with exception.translated('destroy the guest', instance):
            self._client.call('destroy', uuid=instance.uuid)

    def power_off(self, instance):
        """Stop a guest; a crashed one stays for its console to be read."""
        with exception.translated('power off the guest', instance):
            try:
                state = self._client.call('info', uuid=instance.uuid)['state']
            except CosmosError as e:
                if e.code != 'no-such-guest':
                    raise
                return
            if state != CRASHED:
                self._client.call('destroy', uuid=instance.uuid)

    def info(self, instance):
        """A guest that cosmosd does not have is powered off.

        :returns: InstanceInfo
        """
        try:
            with exception.translated('read the guest', instance):
                guest = self._client.call('info', uuid=instance.uuid)
        except nova_exception.InstanceNotFound:
            return hardware.InstanceInfo(state=power_state.SHUTDOWN)
        return hardware.InstanceInfo(
            state=_power_state(guest['state'], instance),
            internal_id=guest['domid'])

    def list(self):
        """:returns: cosmosd's guests, crashed ones too"""
        with exception.translated('list the guests'):
            return self._client.call('list')['guests']

    def pause(self, instance):
        """Stop a guest's processor time."""
        with exception.translated('pause the guest', instance):
            self._client.call('pause', uuid=instance.uuid)

    def unpause(self, instance):
        """Let a paused guest go on."""
        with exception.translated('unpause the guest', instance):
            self._client.call('unpause', uuid=instance.uuid)

    def suspend(self, instance):
        """Save a guest where cosmosd can, else pause it; repeatable."""
        with exception.translated('suspend the guest', instance):
            self._save_or_pause(instance.uuid)

    def _save_or_pause(self, uuid):
        try:
            self._client.call('save', uuid=uuid)
        except CosmosError as e:
            if e.code != 'unsupported':
                raise
            self._client.call('pause', uuid=uuid)

    def resume(self, instance):
        """Let a suspended guest go on; repeatable.

        :returns: False if there is no guest any more, or it is down
        """
        try:
            with exception.translated('resume the guest', instance):
                state = self._client.call('info', uuid=instance.uuid)['state']
                if state in DOWN:
                    return False
                self._go_on(instance, state)
        except nova_exception.InstanceNotFound:
            return False
        return True

    def _go_on(self, instance, state):
        if state == SAVED:
            self._client.call('restore', uuid=instance.uuid)
            # Its ports are new: clickos-agent has to open them again.
            self.await_rules(instance)
        else:
            self._client.call('unpause', uuid=instance.uuid)

    def attach(self, instance, vif):
        """Give a guest an interface; one without a guest has it at its start.

        :param vif: from vif.of_new_port(); its devid is chosen here.
        """
        with exception.translated('attach port %s' % vif['port_id'],
                                  instance):
            vifs = self._vifs(instance)
            if vifs is None or vif['port_id'] in vifs.values():
                return
            devid = max(vifs, default=-1) + 1
            self._client.call('vif-plug', uuid=instance.uuid,
                              vif=dict(vif, devid=devid))
        LOG.info('Port %(port)s is device %(devid)d of the guest',
                 {'port': vif['port_id'], 'devid': devid}, instance=instance)
        if vif.get('filtered'):
            self.await_rules(instance)

    def detach(self, instance, port_id):
        """Take an interface from a guest; may be called twice."""
        with exception.translated('detach port %s' % port_id, instance):
            vifs = self._vifs(instance) or {}
            for devid in (devid for devid, port in vifs.items()
                          if port == port_id):
                self._client.call('vif-unplug', uuid=instance.uuid,
                                  devid=devid)

    def _vifs(self, instance):
        """:returns: port id by devid; None without a guest that runs"""
        try:
            found = self._client.call('info', uuid=instance.uuid)
        except CosmosError as e:
            if e.code != 'no-such-guest':
                raise
            return None
        if found['state'] in DOWN:
            return None
        return {vif['devid']: vif.get('port_id') for vif in found['vifs']}

    def counted(self, instance):
        """:returns: what cosmosd knows of a guest, and its ports' counters"""
        with exception.translated('read the counters', instance):
            return (self._client.call('info', uuid=instance.uuid),
                    self._client.call('vif-list', uuid=instance.uuid)['ports'])

    def console(self, instance):
        """:returns: the end of what a guest says, and why it is down, bytes

        :raises: ConsoleNotAvailable without a guest
        """
        try:
            with exception.translated('read the console', instance):
                text = self._client.call('console', uuid=instance.uuid,
                                         max_bytes=MAX_CONSOLE_BYTES)['text']
                guest = self._client.call('info', uuid=instance.uuid)
        except nova_exception.InstanceNotFound:
            raise nova_exception.ConsoleNotAvailable()
        if guest['state'] in DOWN:
            text = '%s%s: %s\n' % (
                text + '\n' if text and not text.endswith('\n') else text,
                guest['state'],
                host_text.without_places(guest.get('reason', '')))
        return text.encode('ascii', 'backslashreplace')


def _name(instance):
    """Return what people read in cosmosd's list: server (VNF).

    A tenant chose both names, so they are cut, and a character that could
    deceive a terminal is a question mark. Names are not unique.
    """
    vnf_name = (instance.metadata or {}).get(vnf.SERVER_NAME_KEY)
    name = instance.display_name or instance.name
    if vnf_name:
        name = '%s (%s)' % (name, vnf_name)
    name = ''.join(c if c.isprintable() else '?' for c in name)
    return name.encode()[:_NAME_BYTES].decode(errors='ignore')


def _power_state(state, instance):
    """cosmosd knows no suspended guest; Nova does know that it suspended.

    A guest that a person paused or saved without Nova is not suspended: Nova
    would stop it.
    """
    if state in (PAUSED, SAVED) and (
            instance.vm_state == vm_states.SUSPENDED
            or instance.task_state == task_states.SUSPENDING):
        return power_state.SUSPENDED
    return _POWER_STATES.get(state, power_state.NOSTATE)
