# SPDX-License-Identifier: Apache-2.0
"""The counters of a guest as JSON, which the plots ask for again.

The switch counts at the ports, the elements count in their handlers. The
page makes rates of two answers.
"""

import logging
import time

from django.core.cache import cache
from django.http import JsonResponse
from django.views.decorators import http
from horizon import decorators

from clickos_dashboard.api import ports as known_ports
from clickos_dashboard.api import sessions
from clickos_dashboard import exceptions

LOG = logging.getLogger(__name__)
#: Last parts of handlers that count up.
_COUNT = ('count', 'byte_count', 'drops')
#: Handlers that one answer reads, by one request.
MOST = 12
#: A router with other elements shows their counters after this time.
_KEPT_S = 30
_DROPPED = 'dropped_'
_SIDES = ('rx_packets', 'rx_bytes', 'tx_packets', 'tx_bytes')


@http.require_GET
@decorators.require_auth
def answer(request, server_id):
    """Return ports and counting handlers, or the reason."""
    try:
        found = _counters(request, str(server_id))
    except exceptions.RECOVERABLE as exc:
        return JsonResponse({'error': str(exc)}, status=502)
    response = JsonResponse(found)
    response['Cache-Control'] = 'no-store'
    return response


def ports(client, server_id):
    """Return the ports of a guest with their counters."""
    return [_port(port) for port in client.list_ports(server_id)]


def named_ports(request, client, server_id):
    """Return the ports with the names of their connection points."""
    key = f'clickos-points-{request.user.id}-{server_id}'
    names = cache.get(key)
    if names is None:
        names = _point_names(request, server_id)
        cache.set(key, names, _KEPT_S)
    found, seen = ports(client, server_id), set()
    for port in found:
        name = names.get(port['mac'], port['mac'])
        port['name'] = f'{name} {port["mac"]}' if name in seen else name
        seen.add(name)
    return found


def _point_names(request, server_id):
    """Return {MAC: name}; counters need no Neutron."""
    try:
        return known_ports.names(request, server_id)
    except Exception:
        LOG.warning('Ports of server %s have no names', server_id,
                    exc_info=True)
        return {}


def _counters(request, server_id):
    client = sessions.clickos(request)
    return {'ports': named_ports(request, client, server_id),
            'handlers': [{'name': name, 'value': value} for name, value
                         in _handlers(request, client, server_id)],
            'at_ms': round(time.monotonic() * 1000)}


def _port(port):
    counters = port['counters']
    dropped = {name.removeprefix(_DROPPED): count
               for name, count in sorted(counters.items())
               if name.startswith(_DROPPED) and count}
    return {'id': port['id'], 'mac': port['mac_address'],
            'link': 'up' if port['link_up'] else 'down',
            'drops': sum(dropped.values()),
            'reasons': ', '.join(f'{name}: {count}'
                                 for name, count in dropped.items()),
            **{name: counters.get(name, 0) for name in _SIDES}}


def _handlers(request, client, server_id):
    """Read the counting handlers; one without a number is left out."""
    names = _names(request, client, server_id)
    values = client.read_many(server_id, names) if names else {}
    for name, value in values.items():
        text = '' if isinstance(value, Exception) else value.strip()
        if text.isascii() and text.isdigit() and len(text) <= 20:
            yield name, int(text)


def _names(request, client, server_id):
    key = f'clickos-counters-{request.user.id}-{server_id}'
    names = cache.get(key)
    if names is None:
        names = [handler['name'] for handler
                 in client.list_handlers(server_id) if handler['read']
                 and handler['name'].rpartition('.')[2] in _COUNT][:MOST]
        cache.set(key, names, _KEPT_S)
    return names
