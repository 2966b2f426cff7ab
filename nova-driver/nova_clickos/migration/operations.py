# SPDX-License-Identifier: Apache-2.0
"""Nova's steps of a live migration, on both hosts.

Nova carries an object between the hosts whose classes are those of its own
drivers. Like Nova's fake driver this one uses that of libvirt. Its field
``filename`` holds JSON: first the source's devices by port, then the target's
invitation.
"""

import json

from cosmos_client import CosmosError
from nova import exception as nova_exception
from nova.objects import migrate_data as migrate_data_objects
from oslo_log import log as logging

from nova_clickos import host
from nova_clickos.migration import arrivals
from nova_clickos.migration import channel
from nova_clickos.migration import departure
from nova_clickos import vif as vifs

LOG = logging.getLogger(__name__)


class LiveMigration:
    """The steps for guests that move while they run."""

    def __init__(self, client, guests):
        self._client = client
        self._guests = guests
        self._arrivals = arrivals.Arrivals(client)

    def check_target(self, sha256, info):
        """Refuse a guest that this host cannot run.

        :param sha256: of the guest's image.
        :param info: cosmosd's account of this host
        :returns: LibvirtLiveMigrateData
        :raises: MigrationPreCheckError
        """
        if info['host_kind'] != host.PROCESS:
            raise _refused('guests of a Xen host do not move while they run; '
                           'use a cold migration')
        if sha256 != info['engine_sha256']:
            raise _refused('the target runs another engine; use a cold '
                           'migration after a rebuild')
        return migrate_data_objects.LibvirtLiveMigrateData(
            filename='', is_shared_instance_path=False,
            is_shared_block_storage=False)

    def check_source(self, instance, migrate_data):
        """Refuse a guest that does not run; note its devices.

        :raises: MigrationPreCheckError
        """
        found = self._client.info(instance.uuid)
        if found['state'] != 'running':
            raise _refused('the guest is %s; only one that runs moves'
                           % found['state'])
        migrate_data.filename = json.dumps({
            vif['port_id']: vif['devid'] for vif in found['vifs']
            if vif.get('port_id')})
        return migrate_data

    def prepare(self, instance, sha256, migrate_data):
        """Make the guest on this host, with closed routers.

        :raises: MigrationError; nothing is left then
        """
        if 'vifs' not in migrate_data:
            raise nova_exception.MigrationError(
                reason='Neutron binds no port to two hosts: it lacks the '
                       'extension binding-extended')
        try:
            wanted = _wanted(migrate_data)
            migrate_data.filename = self._arrivals.expect(
                instance, sha256, wanted)
        except (CosmosError, channel.ChannelError) as e:
            raise nova_exception.MigrationError(reason=str(e))
        if any(vif.get('filtered') for vif in wanted):
            self._guests.await_rules(instance)
        return migrate_data

    def move(self, instance, migrate_data):
        """Move the guest to the prepared host.

        :returns: False if it stays here and goes on
        :raises: MigrationError if it is halted here
        """
        try:
            departure.move(self._client, instance.uuid,
                           migrate_data.filename)
        except departure.Stayed as e:
            LOG.warning('The guest stays: %s', e, instance=instance)
            return False
        except departure.Lost as e:
            raise nova_exception.MigrationError(reason=str(e))
        return True

    def arrived(self, instance):
        """Forget what the arrival needed."""
        self._arrivals.forget(instance)

    def undo(self, instance):
        """Remove a guest that does not come."""
        self._arrivals.forget(instance)
        self._guests.destroy(instance)


def _refused(reason):
    return nova_exception.MigrationPreCheckError(reason=reason)


def _wanted(migrate_data):
    """:returns: the vifs of the guest here, as the source numbers them"""
    devids = json.loads(migrate_data.filename)
    wanted = []
    for found in migrate_data.vifs:
        nic = vifs.of_new_port(found.get_dest_vif())
        if nic['port_id'] in devids:
            wanted.append(dict(nic, devid=devids[nic['port_id']]))
    return sorted(wanted, key=lambda nic: nic['devid'])
