# SPDX-License-Identifier: Apache-2.0
"""Counters of several guests as JSON, of which the overview makes rates."""

import time

from clickos_client import api
from django.http import JsonResponse
from django.views.decorators import http
from horizon import decorators

from clickos_dashboard.api import sessions
from clickos_dashboard import exceptions
from clickos_dashboard.guests import counters

#: Guests of one answer; each takes clickos-api 0.14 s on an idle machine.
MOST = 6
#: What scripts get of each port.
_PORT = ('mac', 'rx_packets', 'rx_bytes', 'tx_packets', 'tx_bytes', 'drops')


@http.require_GET
@decorators.require_auth
def answer(request):
    """Return the counters of the guests that the query names."""
    client = sessions.clickos(request)
    try:
        found = [_guest(client, server_id) for server_id
                 in request.GET.getlist('server')[:MOST]]
    except exceptions.RECOVERABLE as exc:
        return JsonResponse({'error': str(exc)}, status=502)
    response = JsonResponse({'guests': found})
    response['Cache-Control'] = 'no-store'
    return response


def _guest(client, server_id):
    """Sum up the ports; a guest that clickos-api refuses has an error."""
    try:
        ports = counters.ports(client, server_id)
    except api.ClickOSError as exc:
        return {'id': server_id, 'error': str(exc)}
    return {'id': server_id, 'at_ms': round(time.monotonic() * 1000),
            'ports': [{name: port[name] for name in _PORT}
                      for port in ports],
            'sent': sum(port['rx_packets'] for port in ports),
            'received': sum(port['tx_packets'] for port in ports),
            'dropped': sum(port['drops'] for port in ports)}
