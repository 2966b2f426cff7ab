# SPDX-License-Identifier: Apache-2.0
"""Watches the servers of all ClickOS VNFs and shows their states.

See docs/adr/0039-dead-operations.md. Between two looks it only asks
Nova which servers of VNFs that heal themselves changed. Guests are read in
threads of their own (rounds.py), because their tenants decide how long that
takes.
"""

import datetime
import functools
import os
import threading
import time

from oslo_config import cfg
from oslo_log import log as logging
from tacker.db import api as db_api
from tacker import objects
from tacker.objects import fields
from tacker.vnflcm import utils as vnflcm_utils

from tacker_clickos import automatic
from tacker_clickos import leftovers
from tacker_clickos import outages
from tacker_clickos import own
from tacker_clickos import rounds
from tacker_clickos import servers
from tacker_clickos import stale_operations
from tacker_clickos import state
from tacker_clickos import tacker_db
from tacker_clickos import troubles
from tacker_clickos import vim

LOG = logging.getLogger(__name__)

_MAX_STATE = 300
#: Nova's word for the power of a guest that hears nothing.
_NO_STATE = 0
#: No operation works on a VNF. After one that failed, a server may be gone.
_IDLE = (None, fields.VnfInstanceTaskState.ERROR)
#: Seconds that a glance covers, since the clocks of hosts differ.
_CHANGES_S = 10
_started = threading.Event()


def start():
    """Start the watcher's thread, once a process."""
    if cfg.CONF.clickos.watch_interval and not _started.is_set():
        _started.set()
        troubles.serve()
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
    with outages.ignored():
        _watch(watcher)


def _watch(watcher):
    pause = threading.Event()
    next_look = time.monotonic() + cfg.CONF.clickos.watch_interval
    while not pause.wait(min(cfg.CONF.clickos.watch_interval,
                             cfg.CONF.clickos.heal_interval)):
        watcher.glance()
        if time.monotonic() >= next_look:
            watcher.run_once()
            next_look = time.monotonic() + cfg.CONF.clickos.watch_interval


class Watcher(object):
    """Compares Nova's servers with what the VNFs' metadata says."""

    def __init__(self):
        self._troubles = troubles.Troubles()
        self._stale_operations = stale_operations.StaleOperations()
        self._leftovers = leftovers.Leftovers()
        self._healer = automatic.Healer()
        self._silence = automatic.Silence()
        self._scaler = automatic.Scaler()
        self._readers = rounds.Rounds(self._scale)
        #: {VNF: (project, arguments of _scale)} with guests to read
        self._scaled = {}
        #: {VIM: (connection, {server: (VNF, VNFC)})} that heal themselves
        self._healed = {}

    def run_once(self):
        """Look once at every VIM. Never raises; one bad VIM hides no other.
        """
        for name, run in (('servers of VNFs', self._look_at_vims),
                          ('dead operations', self._stale_operations.run_once),
                          ('remains of operations', self._leftovers.run_once)):
            with self._troubles.tried('database', name), \
                    tacker_db.own_context() as context:
                run(context, self._troubles)

    def _look_at_vims(self, context, found):
        by_vim = _by_vim(context, found)
        self._healed, self._scaled = {}, {}
        found.keep('vim', by_vim)
        vnf_ids = {each.id for group in by_vim.values() for each in group}
        found.keep('vnf', vnf_ids)
        found.keep('scale', vnf_ids)
        self._silence.keep(vnf_ids)
        self._scaler.keep(vnf_ids)
        for vim_id, vnf_instances in by_vim.items():
            with found.tried('vim', vim_id):
                self._look_at(context, vim_id, vnf_instances)
        self._readers.begin(self._scaled)

    def _scale(self, connection, vnf_instance):
        """Read guests, which may take long, outside the watcher's thread."""
        with self._troubles.tried('scale', vnf_instance.id):
            self._scaler.run_once(connection, vnf_instance)

    def glance(self):
        """Heal guests that died since the last look. Never raises."""
        for vim_id, (connection, servers_of) in self._healed.items():
            with self._troubles.tried('vim', vim_id):
                self._glance_at(connection, servers_of)

    def _glance_at(self, connection, servers_of):
        since = (datetime.datetime.now(datetime.timezone.utc)
                 - datetime.timedelta(seconds=_CHANGES_S))
        sick = {}
        changed = own.servers(
            connection, changes_since=since.strftime('%Y-%m-%dT%H:%M:%SZ'))
        for server in changed:
            what = describe(server)
            # A deleted one may be the trace of a heal: run_once() judges it.
            if server.id in servers_of and what != 'DELETED' \
                    and what.startswith(automatic.SICK):
                vnf_id, vnfc_id = servers_of[server.id]
                sick.setdefault(vnf_id, {})[vnfc_id] = what, server.id
        for vnf_id, found in sick.items():
            if self._healer.heal(
                    connection, vnf_id,
                    {vnfc: what for vnfc, (what, _server) in found.items()},
                    {vnfc: server for vnfc, (_what, server)
                     in found.items()}):
                for _what, server_id in found.values():
                    del servers_of[server_id]

    def _look_at(self, context, vim_id, vnf_instances):
        """Compare the VNFs of one VIM, each for itself, and act."""
        access_info = vnflcm_utils.get_vim(
            context, vnf_instances[0].vim_connection_info)['access_info']
        connection = vim.connect(access_info)
        known = {server.id: server for server in own.servers(connection)}
        for vnf_instance in vnf_instances:
            with self._troubles.tried('vnf', vnf_instance.id):
                states = _compare(context, vnf_instance, known)
                self._act(connection, vim_id, vnf_instance, states)

    def _act(self, connection, vim_id, vnf_instance, states):
        """Do what a VNF's descriptor asks for without a request."""
        if not automatic.of(vnf_instance):
            return
        sick = automatic.sick_guests(vnf_instance, states)
        sick.update(self._silence.lasting(vnf_instance, states))
        if sick:
            self._healer.heal(connection, vnf_instance.id, sick, {
                vnfc.id: state.server_id(vnfc) for vnfc in
                vnf_instance.instantiated_vnf_info.vnfc_resource_info})
            return
        healed = automatic.of(vnf_instance).get('healed') or ()
        _connection, servers_of = self._healed.setdefault(
            vim_id, (connection, {}))
        servers_of.update({
            state.server_id(vnfc): (vnf_instance.id, vnfc.id) for vnfc in
            vnf_instance.instantiated_vnf_info.vnfc_resource_info
            if vnfc.vdu_id in healed})
        if automatic.of(vnf_instance).get('scales'):
            self._scaled[vnf_instance.id] = (
                vnf_instance.tenant_id, (connection, vnf_instance))


def _by_vim(context, found):
    """Return the VNFs by VIM and region, for which Nova has other servers.

    A row that cannot be read or used hides no other.

    :param found: troubles.Troubles
    """
    by_vim, readers = {}, _readers(context)
    found.keep('row', readers)
    for vnf_id, read in readers.items():
        with found.tried('row', vnf_id):
            vnf_instance = read()
            if _is_watched(vnf_instance):
                by_vim.setdefault(_vim(vnf_instance), []).append(vnf_instance)
    return by_vim


def _readers(context):
    """Return functions that return the VNFs with guests, by id."""
    try:
        instances = objects.VnfInstanceList.get_by_filters(
            context, {'model': 'VnfInstance', 'field': 'instantiation_state',
                      'value': 'INSTANTIATED', 'op': '=='})
        ours = set(tacker_db.instantiated(context))
        return {each.id: lambda each=each: each for each in instances
                if each.id in ours}
    except Exception:
        return {vnf_id: functools.partial(objects.VnfInstance.get_by_id,
                                          context, vnf_id)
                for vnf_id in tacker_db.instantiated(context)}


def _is_watched(vnf_instance):
    info = vnf_instance.instantiated_vnf_info
    return (info and state.PROPERTIES in state.params(info)
            and vnf_instance.task_state in _IDLE
            and vnf_instance.vim_connection_info)


def _vim(vnf_instance):
    vim_info = vnf_instance.vim_connection_info[0]
    region = (vim_info.access_info or {}).get('region')
    return f'{vim_info.vim_id}, {region}' if region else vim_info.vim_id


def _compare(context, vnf_instance, known):
    """Store the states of a VNF's guests if they changed; return them.

    :param known: {id: server} of its VIM
    """
    states = {vnfc.id: describe(known.get(state.server_id(vnfc))) for vnfc in
              vnf_instance.instantiated_vnf_info.vnfc_resource_info}
    shown = (vnf_instance.vnf_metadata or {}).get(state.STATE)
    if state.text(states) != shown:
        _store(context, vnf_instance.id, shown, state.text(states))
    return states


def describe(server):
    """Return one word for a server's state, with the fault if it has one."""
    if server is None:
        return 'DELETED'
    if server.status == 'ERROR':
        return ('ERROR: %s' % servers.fault(server))[:_MAX_STATE]
    if server.status == 'ACTIVE' and server.power_state == _NO_STATE:
        return automatic.UNREACHABLE
    return server.status


def _store(context, vnf_id, shown, states):
    """Change this one entry, unless an operation has begun meanwhile."""
    def change(metadata, task_state):
        if task_state not in _IDLE or metadata.get(state.STATE) != shown:
            return None
        return dict(metadata, **{state.STATE: states})
    tacker_db.change_metadata(context, vnf_id, change)
    LOG.info('VNF %s: guests are now %s', vnf_id, states)
