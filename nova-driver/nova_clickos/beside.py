# SPDX-License-Identifier: Apache-2.0
"""Shows in Nova what happens to guests outside of it.

Nova's lifecycle events know no guest that is out of reach. For a server whose
guest somebody paused they leave the state ACTIVE, which Nova does not unpause.
So this changes the server's record, unless an operation works on it.
"""

from nova.compute import power_state
from nova.compute import vm_states
from nova import context as nova_context
from nova import exception as nova_exception
from nova import objects
from oslo_log import log as logging

from nova_clickos.conf import CONF

LOG = logging.getLogger(__name__)

#: What Nova shows for a state of cosmosd.
_SHOWN = {
    'running': (vm_states.ACTIVE, power_state.RUNNING),
    'paused': (vm_states.PAUSED, power_state.PAUSED),
    'unreachable': (vm_states.ACTIVE, power_state.NOSTATE),
}
#: Servers in another state are Nova's alone: a suspended guest is paused.
_FOLLOWED = frozenset((vm_states.ACTIVE, vm_states.PAUSED))


def follow(uuid, state):
    """Show the state of one guest."""
    if state not in _SHOWN:
        return
    try:
        server = objects.Instance.get_by_uuid(
            nova_context.get_admin_context(), uuid)
    except nova_exception.InstanceNotFound:
        return
    if server.host == CONF.host:
        _show(server, state)


def follow_all(guests):
    """Show the states of this host's guests.

    :param guests: cosmosd's list
    """
    states = {found['uuid']: found['state'] for found in guests
              if found['state'] in _SHOWN}
    if not states:
        return
    for server in objects.InstanceList.get_by_host(
            nova_context.get_admin_context(), CONF.host):
        if server.uuid in states:
            _show(server, states[server.uuid])


def _show(server, state):
    vm_state, power = _SHOWN[state]
    if server.vm_state not in _FOLLOWED or server.task_state is not None \
            or (server.vm_state, server.power_state) == (vm_state, power):
        return
    before = server.vm_state
    server.vm_state, server.power_state = vm_state, power
    try:
        server.save(expected_vm_state=[before], expected_task_state=[None])
    except (nova_exception.InstanceNotFound,
            nova_exception.InstanceUpdateConflict):
        LOG.debug('An operation has begun: it shows the guest',
                  instance=server)
        return
    LOG.warning('Guest is %s, not by Nova', state, instance=server)
