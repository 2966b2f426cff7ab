# SPDX-License-Identifier: Apache-2.0
"""Asks again for deletions that Nova lost (docs/adr/0053)."""

import threading

from nova.compute import rpcapi
from nova.compute import task_states
from nova import context as nova_context
from nova import objects
from oslo_log import log as logging

from nova_clickos.conf import CONF

LOG = logging.getLogger(__name__)

#: Seconds between two looks.
_INTERVAL_S = 10


class Deletions:
    """One thread that looks at the servers of this host."""

    def __init__(self):
        #: {server: when Nova last changed it}, of those in deletion
        self._seen = {}
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True,
                                        name='clickos-deletions')

    def start(self):
        """Start the thread; call it once."""
        self._thread.start()

    def stop(self):
        """End the thread and wait for it; may be called twice."""
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join()

    def _run(self):
        while not self._stop.wait(_INTERVAL_S):
            try:
                self.run_once()
            except Exception as e:
                # The next run tries again, whatever it was.
                LOG.warning('Lost deletions are not known: %s', e)

    def run_once(self):
        """Ask for each deletion that has not moved since the last run."""
        context = nova_context.get_admin_context()
        servers = objects.InstanceList.get_by_filters(context, {
            'host': CONF.host, 'task_state': task_states.DELETING,
            'deleted': False})
        before, self._seen = self._seen, {
            server.uuid: server.updated_at for server in servers}
        for server in servers:
            if before.get(server.uuid) == server.updated_at:
                _delete(context, server)


def _delete(context, server):
    """Ask this host; a deletion that is under way holds the second one."""
    LOG.warning('The deletion has not moved for %d s; asking for it again',
                _INTERVAL_S, instance=server)
    volumes = objects.BlockDeviceMappingList.get_by_instance_uuid(
        context, server.uuid)
    rpcapi.ComputeAPI().terminate_instance(context, server, volumes)
