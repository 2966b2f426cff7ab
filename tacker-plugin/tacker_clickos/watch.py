# SPDX-License-Identifier: Apache-2.0
"""Watches the servers of all ClickOS VNFs and shows their states.

See docs/adr/0003-guest-state-in-tacker.md.
"""

import os
import threading

from oslo_config import cfg
from oslo_log import log as logging
from tacker import context as tacker_context
from tacker.db import api as db_api
from tacker import objects
from tacker.objects import fields
from tacker.vnflcm import utils as vnflcm_utils

from tacker_clickos import orphans
from tacker_clickos import rows
from tacker_clickos import servers
from tacker_clickos import state
from tacker_clickos import strays
from tacker_clickos import vim

LOG = logging.getLogger(__name__)

_MAX_STATE = 300
#: No operation works on a VNF. After one that failed, a server may be gone.
_IDLE = (None, fields.VnfInstanceTaskState.ERROR)
_started = threading.Event()


def start():
    """Start the watcher's thread, once a process."""
    if cfg.CONF.clickos.watch_interval and not _started.is_set():
        _started.set()
        os.register_at_fork(after_in_child=_leave_connections)
        threading.Thread(target=_run, name='clickos-watch',
                         daemon=True).start()


def _leave_connections():
    """Leave the thread's database connections to it.

    The conductor forks its worker after it has made its drivers, and the
    worker would close what it inherits under the thread's feet.
    """
    db_api.get_engine().dispose(close=False)


def _run():
    watcher = Watcher()
    pause = threading.Event()
    while not pause.wait(cfg.CONF.clickos.watch_interval):
        watcher.look()


class Watcher(object):
    """Compares Nova's servers with what the VNFs' metadata says."""

    def __init__(self):
        self._failing = set()
        self._orphans = orphans.Orphans()
        self._strays = strays.Strays()

    def look(self):
        """Look once at every VIM. Never raises; one bad VIM hides no other.
        """
        context = tacker_context.get_admin_context()
        try:
            by_vim = _by_vim(context)
            self._failing.discard('database')
            for vim_id, vnf_instances in by_vim.items():
                self._look_at(context, vim_id, vnf_instances)
            self._look_at_operations(context)
        except Exception as error:
            self._failed('database', error)
        finally:
            context.session.close()    # Tacker's readers leave it open

    def _look_at_operations(self, context):
        try:
            self._orphans.look(context)
            self._strays.look(context)
            self._failing.discard('operations')
        except Exception as error:
            self._failed('operations', error)

    def _look_at(self, context, vim_id, vnf_instances):
        try:
            _compare(context, vnf_instances)
            self._failing.discard(vim_id)
        except Exception as error:
            self._failed(vim_id, error)

    def _failed(self, what, error):
        """Log a trouble once, until it is over."""
        if what not in self._failing:
            self._failing.add(what)
            LOG.warning('States of ClickOS guests are not known (%s): %s',
                        what, error)


def _by_vim(context):
    found = {}
    for vnf_instance in objects.VnfInstanceList.get_by_filters(
            context, {'model': 'VnfInstance', 'field': 'instantiation_state',
                      'value': 'INSTANTIATED', 'op': '=='}):
        info = vnf_instance.instantiated_vnf_info
        if (info and state.PROPERTIES in state.params(info)
                and vnf_instance.task_state in _IDLE
                and vnf_instance.vim_connection_info):
            vim_id = vnf_instance.vim_connection_info[0].vim_id
            found.setdefault(vim_id, []).append(vnf_instance)
    return found


def _compare(context, vnf_instances):
    access_info = vnflcm_utils.get_vim(
        context, vnf_instances[0].vim_connection_info)['access_info']
    connection = vim.connect(access_info)
    known = {server.id: server for server in connection.compute.servers()}
    for vnf_instance in vnf_instances:
        states = {vnfc.id: describe(known.get(state.server_id(vnfc)))
                  for vnfc in
                  vnf_instance.instantiated_vnf_info.vnfc_resource_info}
        shown = (vnf_instance.vnf_metadata or {}).get(state.STATE)
        if state.text(states) != shown:
            _store(context, vnf_instance.id, shown, state.text(states))


def describe(server):
    """Return one word for a server's state, with the fault if it has one."""
    if server is None:
        return 'DELETED'
    if server.status == 'ERROR':
        return ('ERROR: %s' % servers.fault(server))[:_MAX_STATE]
    return server.status


def _store(context, vnf_id, shown, states):
    """Change this one entry, unless an operation has begun meanwhile."""
    def change(metadata, task_state):
        if task_state not in _IDLE or metadata.get(state.STATE) != shown:
            return None
        return dict(metadata, **{state.STATE: states})
    rows.change_metadata(context, vnf_id, change)
    LOG.info('VNF %s: guests are now %s', vnf_id, states)
