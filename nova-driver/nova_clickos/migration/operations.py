# SPDX-License-Identifier: Apache-2.0
"""Nova's steps of a live migration, on both hosts.

Nova carries an object between the hosts whose classes are those of its own
drivers. Like Nova's fake driver this one uses that of libvirt. Its field
``filename`` holds JSON: first the source's devices by port and its
certificate, then the target's invitation. Nova logs it, so it has no secret.
"""

import json
import threading

from clickos_client import host_text
from cosmos_client import CosmosError
from nova import exception as nova_exception
from nova.objects import migrate_data as migrate_data_objects
from oslo_log import log as logging

from nova_clickos import exception
from nova_clickos import host
from nova_clickos.migration import channel
from nova_clickos.migration import identity
from nova_clickos.migration import incoming
from nova_clickos.migration import outgoing
from nova_clickos import vif as vifs

LOG = logging.getLogger(__name__)

#: Guests that were checked and whose move has not begun.
_MOST_CHECKED = 1024


class LiveMigration:
    """The steps for guests that move while they run."""

    def __init__(self, client, guests):
        self._client = client
        self._guests = guests
        self._arrivals = incoming.Arrivals(client)
        self._identities = {}   # by server, the oldest first
        self._leaving = {}      # by server: an event that ends the move

    def check_target(self, sha256, source_type, info):
        """Refuse a guest that this host cannot run.

        A Xen host gets the guest's image from Glance.

        :param sha256: of the guest's image.
        :param source_type: the hypervisor of the source, as Nova knows it
        :param info: cosmosd's account of this host
        :returns: LibvirtLiveMigrateData
        :raises: MigrationPreCheckError
        """
        if source_type != host.hypervisor_type(info):
            raise _refused('the hosts are of two kinds, %s and %s'
                           % (source_type, host.hypervisor_type(info)))
        if info['host_kind'] == host.PROCESS and \
                sha256 != info['engine_sha256']:
            raise _refused('the target runs another engine; use a cold '
                           'migration after a rebuild')
        return migrate_data_objects.LibvirtLiveMigrateData(
            filename='', is_shared_instance_path=False,
            is_shared_block_storage=False)

    def check_source(self, instance, migrate_data):
        """Refuse a guest that does not run; note its devices.

        :raises: MigrationPreCheckError
        """
        found = self._client.call('info', uuid=instance.uuid)
        if found['state'] != 'running':
            raise _refused('the guest is %s; only one that runs moves'
                           % found['state'])
        migrate_data.filename = json.dumps({
            'certificate': self._new_identity(instance.uuid).certificate,
            'devids': {vif['port_id']: vif['devid'] for vif in found['vifs']
                       if vif.get('port_id')}})
        return migrate_data

    def _new_identity(self, uuid):
        """:returns: Identity that this host has for the move of a guest"""
        self._identities.pop(uuid, None)
        if len(self._identities) >= _MOST_CHECKED:
            del self._identities[next(iter(self._identities))]
        self._identities[uuid] = identity.Identity()
        return self._identities[uuid]

    def prepare(self, instance, sha256, migrate_data):
        """Make the guest on this host, with closed routers.

        :raises: MigrationError; nothing is left then
        """
        if 'vifs' not in migrate_data:
            raise nova_exception.MigrationError(
                reason='Neutron binds no port to two hosts: it lacks the '
                       'extension binding-extended')
        source = _of_source(migrate_data)
        try:
            wanted = _wanted(migrate_data, source['devids'])
            migrate_data.filename = self._arrivals.expect(
                instance, sha256, wanted, source['certificate'])
        except CosmosError as e:
            raise nova_exception.MigrationError(reason=exception.told(e))
        except channel.ChannelError as e:
            LOG.warning('The guest cannot arrive: %s', e, instance=instance)
            raise nova_exception.MigrationError(
                reason=host_text.without_places(str(e)))
        if any(vif.get('filtered') for vif in wanted):
            self._guests.await_rules(instance)
        return migrate_data

    def move(self, instance, migrate_data):
        """Move the guest to the prepared host.

        :returns: None, or Nova's status of a migration whose guest stays
            here and continues
        :raises: MigrationError if it is halted here
        """
        own = self._identities.pop(instance.uuid, None)
        aborted = self._leaving[instance.uuid] = threading.Event()
        try:
            if own is None:
                raise outgoing.Stayed('this nova-compute started after the '
                                      'migration was checked; migrate again')
            outgoing.move(self._client, instance.uuid,
                          migrate_data.filename, own, aborted.is_set)
        except outgoing.Stayed as e:
            LOG.warning('The guest stays: %s', e, instance=instance)
            return 'cancelled' if aborted.is_set() else 'failed'
        except outgoing.Lost as e:
            LOG.warning('The guest is halted: %s', e, instance=instance)
            raise nova_exception.MigrationError(
                reason=host_text.without_places(str(e)))
        finally:
            self._leaving.pop(instance.uuid, None)
        return None

    def abort(self, instance):
        """Let a guest stay here that moves, unless the move is committed.

        :raises: MigrationError if it does not move
        """
        aborted = self._leaving.get(instance.uuid)
        if aborted is None:
            raise nova_exception.MigrationError(
                reason='the guest does not move, or has moved')
        aborted.set()

    def arrived(self, instance):
        """Forget what the arrival needed."""
        self._arrivals.forget(instance)

    def undo(self, instance):
        """Remove a guest that does not come."""
        self._arrivals.forget(instance)
        self._guests.destroy(instance)


def _refused(reason):
    return nova_exception.MigrationPreCheckError(reason=reason)


def _of_source(migrate_data):
    """:returns: what check_source() noted

    :raises: MigrationError for a source with an earlier driver
    """
    found = json.loads(migrate_data.filename)
    if 'certificate' not in found:
        raise nova_exception.MigrationError(
            reason='the source has an earlier driver; upgrade nova_clickos '
                   'there, or use a cold migration')
    return found


def _wanted(migrate_data, devids):
    """:returns: the vifs of the guest here, as the source numbers them"""
    wanted = []
    for found in migrate_data.vifs:
        nic = vifs.of_new_port(found.get_dest_vif())
        if nic['port_id'] in devids:
            wanted.append(dict(nic, devid=devids[nic['port_id']]))
    return sorted(wanted, key=lambda nic: nic['devid'])
