# SPDX-License-Identifier: Apache-2.0
"""Makes a guest again in its server, by a hard reboot of Nova.

The host first checks that it can make the new guest, and then replaces the
old one by one request (docs/adr/0105-full-disks.md). Nova's own work lies
before and after it, so the VNF is silent for the start of a guest only. A new
server takes seconds.
"""

import time

from openstack import exceptions as sdk_exceptions
from oslo_config import cfg
from oslo_log import log as logging

from tacker_clickos import outages
from tacker_clickos import servers

LOG = logging.getLogger(__name__)

#: States of servers that Nova reboots and whose host is known to work. After
#: an ERROR another host may do better.
_STATES = frozenset(('ACTIVE', 'SHUTOFF', 'PAUSED', 'SUSPENDED'))
#: What a tenant may have done to a server, which a reboot keeps: it may have
#: other interfaces, another order of them, or other user_data.
_CHANGES = frozenset(('attach_interface', 'detach_interface', 'rebuild'))
_REBOOT, _STARTED = 'reboot', 'compute_reboot_instance'
_SUCCESS = 'Success'
#: Nova's number of the power state of a server that runs.
_RUNNING = 1
#: A host that works begins a reboot within these seconds. A tenant cannot ask
#: Nova whether a host is up.
_BEGIN_S = 10
_POLL_S = 0.1


def is_possible(connection, server, vdu):
    """Return whether a reboot makes the guest that a VDU describes."""
    if server.status not in _STATES or not server.host_id:
        return False
    if not servers.is_as_wanted(connection, server, vdu):
        return False
    return not any(action.action in _CHANGES
                   for action in servers.actions(connection, server))


def ask(connection, server_id):
    """Ask for a reboot, once; return the id of the request.

    :raises: SDKException, ClickOSError
    """
    return servers.act(connection, server_id, {_REBOOT: {'type': 'HARD'}})


def is_done(connection, server, request):
    """Return whether a reboot has made the guest, as soon as it is over.

    :param request: what ask() returned, perhaps long ago
    """
    try:
        note = _outcome(connection, server, request)
        seen = servers.now(connection, server)
    except sdk_exceptions.NotFoundException:
        return False
    return (note is not None and note['result'] == _SUCCESS
            and seen.status == 'ACTIVE')


def reboot(connection, server):
    """Make a server's guest again; return whether that was done.

    :returns: False if the server has no guest, or its host does not answer
    :raises: GuestFailed if the host refused and the old guest runs on;
        ServerFailed if that may pass
    """
    try:
        request = _requested(connection, server)
        note = request and _outcome(connection, server, request)
        seen = servers.now(connection, server)
    except sdk_exceptions.NotFoundException:
        return False
    if note is None or seen.status != 'ACTIVE':
        LOG.info('server %s is not healed in place: %s', server.id,
                 note and note.get('details'))
        return False
    if note['result'] == _SUCCESS:
        return True
    if seen.power_state != _RUNNING:
        return False
    told = note.get('details')
    raise servers.failed(server, told, '%s; the guest runs on as it was' % (
        told or 'its host cannot make it again'))


def _requested(connection, server):
    """Ask for a reboot; return the id of the request, or None.

    Nova refuses it during another task. One begins when a guest has died.
    """
    end = time.monotonic() + _BEGIN_S
    while time.monotonic() < end:
        if not servers.now(connection, server).task_state:
            try:
                return _request(connection, server)
            except sdk_exceptions.ConflictException as error:
                LOG.info('server %s: %s', server.id, error)
        time.sleep(_POLL_S)
    return None


def _request(connection, server):
    known = {action.request_id
             for action in servers.actions(connection, server)}

    def find():
        return next((action.request_id for action
                     in servers.actions(connection, server)
                     if action.action == _REBOOT
                     and action.request_id not in known), None)

    return outages.once(find, lambda: ask(connection, server.id))


def _outcome(connection, server, request):
    """Return the event in which the driver noted the outcome of a reboot.

    Nova calls a reboot a success if the old guest runs on.

    :returns: None if no host began or ended it, or the host noted nothing
    """
    begun = time.monotonic()
    while True:
        events = _events(connection, server, request)
        nova, age_s = events.get(_STARTED), time.monotonic() - begun
        if nova and nova['finish_time']:
            return events.get(servers.START_EVENT)
        if age_s > (cfg.CONF.clickos.boot_timeout if nova else _BEGIN_S):
            return None
        time.sleep(_POLL_S)


def _events(connection, server, request):
    """Return {name: event} of an action."""
    return {event['event']: event for event in
            servers.events(connection, server, request)}
