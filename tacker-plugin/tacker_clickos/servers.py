# SPDX-License-Identifier: Apache-2.0
"""The Nova servers of a VNF."""

import itertools
import re
import time

from clickos_client import vnf
from openstack import exceptions as sdk_exceptions
from oslo_config import cfg
from oslo_log import log as logging

from tacker_clickos import clickos_api
from tacker_clickos import elements
from tacker_clickos import exception
from tacker_clickos import images
from tacker_clickos import outages
from tacker_clickos import own

LOG = logging.getLogger(__name__)

VNF_KEY = vnf.SERVER_KEY
#: The driver of a host notes under this name why a guest did not start.
START_EVENT = 'clickos_start'
#: How the faults begin that are Nova's own; one is the name of an error.
_PASSING_FAULT = re.compile(
    r'(?:No valid host|Exceeded maximum|Build of instance|ClickOS host:'
    r'|Failed to allocate|Virtual Interface|Unable to establish'
    r'|[A-Z]\w*\Z)')
_MAX_REASONS = 3
#: Newest actions of a server that are asked for reasons: each is a request.
_MAX_ACTIONS = 10
#: Nova chooses a host in less, unless it is away.
_PLACE_S = 10
_POLL_S = 0.1


def of_vnf(connection, vnf_id):
    """Return the servers of a VNF; found by name, proved by metadata."""
    return [server for server in own.servers(connection, name=vnf_id)
            if (server.metadata or {}).get(VNF_KEY) == vnf_id]


def named(connection, vnf_id, name):
    """Return the VNF's server of a name, or None."""
    return next((server for server in of_vnf(connection, vnf_id)
                 if server.name == name), None)


def marks_of(vnf_id, vnf_name):
    """Return the metadata that tells whose a server is."""
    marks = {VNF_KEY: vnf_id, vnf.SERVER_NAME_KEY: vnf_name}
    return {key: value for key, value in marks.items() if value}


def create(connection, marks, name, vdu, ports, user_data, hints=None):
    """Ask for a server with the ports in vif order; return it, not ready.

    The caller has removed an earlier server of the name.

    :param marks: from marks_of()
    :param hints: Nova's scheduler hints
    """
    wanted = dict(
        name=name, image_id=_image(connection, vdu),
        flavor_id=_flavor(connection, vdu).id,
        networks=[{'port': port.id} for port in ports], user_data=user_data,
        config_drive=False, metadata=marks)
    if hints:
        wanted['scheduler_hints'] = hints
    try:
        return outages.once(
            lambda: named(connection, marks[VNF_KEY], name),
            lambda: connection.compute.create_server(**wanted))
    except sdk_exceptions.HttpException as error:
        raise _unusable('server', name, error.details or str(error))


def now(connection, server):
    """Return a server as Nova has it now.

    :raises: NotFoundException
    """
    return connection.compute.get_server(server.id)


def act(connection, server_id, action):
    """Ask for an action of a server, once; return the id of the request.

    :param action: the body of the request
    :raises: SDKException
    """
    answer = connection.compute.post('/servers/%s/action' % server_id,
                                     json=action)
    sdk_exceptions.raise_from_response(answer)
    return answer.headers['x-openstack-request-id']


def is_as_wanted(connection, server, vdu):
    """Return whether a server has a VDU's image and flavor, as they are now.

    A server has a copy of its flavor, without the flavor's id.
    """
    flavor, copy = _flavor(connection, vdu), server.flavor
    return (images.suits(connection, vdu.image, _needed(connection, vdu),
                         getattr(server.image, 'id', None))
            and (copy.original_name, copy.ram, copy.vcpus)
            == (flavor.name, flavor.ram, flavor.vcpus)
            and _has_specs(copy, vdu.specs))


def wait_active(connection, servers):
    """Wait until every server runs.

    :raises: GuestFailed with the guest's own message; ServerFailed if no host
        has one
    """
    limit_s = cfg.CONF.clickos.boot_timeout
    end = time.monotonic() + limit_s
    for server in servers:
        while not _is_active(connection, now(connection, server)):
            if time.monotonic() > end:
                raise _failed(server, 'not ACTIVE after %d s' % limit_s)
            time.sleep(_POLL_S)


def wait_placed(connection, server):
    """Wait until a server has a host, so that the next one can avoid it.

    Not for ever: a group may do without its policy.
    """
    end = time.monotonic() + _PLACE_S
    while time.monotonic() < end:
        seen = now(connection, server)
        if seen.host_id or seen.status != 'BUILD':
            return
        time.sleep(_POLL_S)


def _is_active(connection, server):
    if server.status == 'ERROR':
        told = (getattr(server, 'fault', None) or {}).get('message')
        raise failed(server, told, reason(connection, server))
    return server.status == 'ACTIVE'


def failed(server, told, reason):
    """Return the error of a guest that did not start.

    Nova's own faults begin with certain words, a guest's with a file's name.
    After one of Nova's, the guest may start at another time.

    :param told: why it did not start, or None
    :param reason: what the tenant reads
    """
    is_passing = not told or _PASSING_FAULT.match(told)
    return _failed(server, reason, exception.ServerFailed if is_passing
                   else exception.GuestFailed)


def reason(connection, server):
    """Return why a server is in the state ERROR.

    When no host is left to try, Nova's fault says only that. Each host's own
    reason is in the events of the server's actions.
    """
    told = fault(server)
    try:
        hosts = list(_host_failures(connection, server))
    except sdk_exceptions.SDKException as error:
        LOG.warning('server %s: its actions are not known: %s', server.id,
                    error)
        hosts = []
    hosts = [each for each in dict.fromkeys(hosts) if each not in told]
    return '; '.join([told, *hosts[:_MAX_REASONS]])


def _host_failures(connection, server):
    newest = itertools.islice(actions(connection, server), _MAX_ACTIONS)
    for action in newest:
        for event in events(connection, server, action.request_id):
            if event.get('event') == START_EVENT and event.get('details'):
                yield event['details']


def actions(connection, server):
    """Return what was done to a server, as Nova lists it: newest first."""
    return connection.compute.server_actions(server)


def events(connection, server, request_id):
    """Return the events of a server's action, as dicts."""
    found = connection.compute.get_server_action(request_id, server)
    listed = [event if isinstance(event, dict) else event.to_dict()
              for event in found.events or []]
    return [_with_details(connection, server, request_id, event)
            for event in listed]


def _with_details(connection, server, request_id, event):
    """Return an event with the details that Nova may hide from a member."""
    if event.get('event') != START_EVENT or event.get('result') != 'Error' \
            or event.get('details'):
        return event
    try:
        known = clickos_api.Client(connection).start_details(server.id)
    except (exception.HandlerRefused, exception.ApiUnavailable,
            exception.ServiceAway) as error:
        LOG.warning('server %s: why it did not start is not known: %s',
                    server.id, error)
        return event
    return {**event, 'details': known.get(request_id)}


def fault(server):
    """Return Nova's reason for the state ERROR."""
    return ((getattr(server, 'fault', None) or {}).get('message')
            or 'Nova gave the server up and noted no reason; its database '
            'or message queue may have been away')


def delete(connection, servers):
    """Delete servers and wait until they are gone; may be called again."""
    for server in servers:
        connection.compute.delete_server(server.id, ignore_missing=True)
    limit_s = cfg.CONF.clickos.delete_timeout
    end = time.monotonic() + limit_s
    for server in servers:
        while _is_known(connection, server):
            if time.monotonic() > end:
                raise _failed(server, 'not deleted after %d s' % limit_s)
            time.sleep(_POLL_S)


def _is_known(connection, server):
    """Return whether a server that is being deleted is there yet.

    Nova calls it DELETED before its last steps, which fail without placement:
    then it is in ERROR, for ever.

    :raises: ServerFailed if Nova has given up: no task runs any more
    """
    try:
        seen = connection.compute.get_server(server.id)
    except sdk_exceptions.NotFoundException:
        return False
    if seen.status == 'ERROR' and not seen.task_state:
        raise _failed(server, 'not deleted: %s' % reason(connection, seen))
    return True


def _failed(server, reason, kind=exception.ServerFailed):
    return kind(name=server.name, server_id=server.id, reason=reason)


def _unusable(kind, name, reason):
    return exception.ResourceNotUsable(kind=kind, name=name, reason=reason)


def _image(connection, vdu):
    """Return the id of the image that has the VDU's elements."""
    return images.choose(connection, vdu.image, _needed(connection, vdu))


def _needed(connection, vdu):
    """Return the groups of elements of a VDU, or None."""
    return elements.needed(
        vdu.configuration.text, vdu.configuration.groups,
        elements.Allowance(connection.current_project_id),
        vdu.configuration.pair)


def _flavor(connection, vdu):
    """Return the flavor: the named one, or the smallest that fits."""
    flavors = list(connection.compute.flavors(get_extra_specs=True)
                   if vdu.specs else connection.compute.flavors())
    if vdu.flavor:
        fits = [flavor for flavor in flavors if flavor.name == vdu.flavor]
    else:
        fits = [flavor for flavor in flavors
                if flavor.ram >= vdu.memory_mib and flavor.vcpus >= vdu.vcpus]
    fits = [flavor for flavor in fits if _has_specs(flavor, vdu.specs)]
    if not fits:
        raise _unusable('flavor', ', '.join([
            vdu.flavor or '%d MiB, %d vCPU' % (vdu.memory_mib, vdu.vcpus),
            *('%s=%s' % spec for spec in sorted(vdu.specs.items()))]),
            'is not in Nova')
    return min(fits, key=lambda flavor: (flavor.ram, flavor.vcpus,
                                         flavor.id))


def _has_specs(flavor, specs):
    """Return whether a flavor has the extra specs, with these values."""
    if not specs:
        return True
    found = getattr(flavor, 'extra_specs', None) or {}
    return all(str(found.get(name)) == value
               for name, value in specs.items())
