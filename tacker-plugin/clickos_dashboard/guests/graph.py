# SPDX-License-Identifier: Apache-2.0
"""The picture of a guest's graph with rates, which the page asks again.

A rate is the difference of two answers. The cache keeps the last answer for
each user and guest, as the guest's text.
"""

from clickos_client import graph
from clickos_client import picture as drawing
from django.core.cache import cache
from django.http import HttpResponse
from django.http import JsonResponse
from django.views.decorators import http
from horizon import decorators

from clickos_dashboard.api import sessions
from clickos_dashboard import exceptions

#: A guest stops counting for a reader that was away this long.
KEPT_S = 30


@http.require_GET
@decorators.require_auth
def picture(request, server_id):
    """Return the picture as SVG, or the reason as JSON."""
    try:
        svg = _picture(request, str(server_id))
    except exceptions.RECOVERABLE as exc:
        return JsonResponse({'error': str(exc)}, status=502)
    except ValueError as exc:
        return JsonResponse({'error': f'the guest answers no graph: {exc}'},
                            status=502)
    answer = HttpResponse(svg, content_type='image/svg+xml')
    answer['Cache-Control'] = 'no-store'
    # The picture alone in a window runs no script.
    answer['Content-Security-Policy'] = (
        "default-src 'none'; style-src 'unsafe-inline'")
    return answer


def _picture(request, server_id):
    key = f'clickos-graph-{request.user.id}-{server_id}'
    text = sessions.clickos(request).read(server_id, graph.HANDLER)
    after, before = graph.parse(text), cache.get(key)
    cache.set(key, text, KEPT_S)
    rates = graph.rates(graph.parse(before), after) if before else None
    return drawing.svg(after, rates)
