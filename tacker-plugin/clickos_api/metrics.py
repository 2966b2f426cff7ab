# SPDX-License-Identifier: Apache-2.0
"""The service's figures for Prometheus (docs/operator/monitor.md)."""

from clickos_client import release
from oslo_log import log as logging
import prometheus_client
from prometheus_client import core

from clickos_api import errors
from clickos_api.state import history

LOG = logging.getLogger(__name__)

#: A client may send any word as method. Each value of a label is kept.
_METHODS = frozenset(('DELETE', 'GET', 'HEAD', 'OPTIONS', 'PATCH', 'POST',
                      'PUT'))

REGISTRY = prometheus_client.CollectorRegistry()
REQUESTS = prometheus_client.Counter(
    'clickos_api_requests', 'Answers, by operation and status',
    ('method', 'operation', 'status'), registry=REGISTRY)
BUILD = prometheus_client.Info(
    'clickos_api_build', 'The release of clickos-api', registry=REGISTRY)
BUILD.info({'version': release.version()})
SECONDS = prometheus_client.Histogram(
    'clickos_api_request_seconds', 'Duration of requests',
    ('method', 'operation'), registry=REGISTRY,
    buckets=(.005, .01, .02, .05, .1, .2, .5, 1, 2, 5, 15))


def method(name):
    """Return the label of a request's method."""
    return name if name in _METHODS else 'other'


class States:
    """Figures of the database, read at each scrape."""

    def __init__(self, operations):
        self._operations = operations

    def collect(self):
        """Give the families of figures."""
        busy = core.GaugeMetricFamily(
            'clickos_api_guest_requests',
            'Requests to guests that are under way')
        busy.add_metric([], self._operations.workers.busy)
        yield busy
        try:
            by_status, number, size = history.counts(self._operations.store)
        except errors.Unavailable:
            return   # the log has it; the other figures stay
        changes = core.GaugeMetricFamily(
            'clickos_api_changes', 'Changes that are kept, by status',
            labels=['status'])
        for status, count in sorted(by_status.items()):
            changes.add_metric([status], count)
        yield changes
        yield core.GaugeMetricFamily('clickos_api_states',
                                     'Desired states', number)
        yield core.GaugeMetricFamily('clickos_api_state_bytes',
                                     'Bytes of all desired states', size)


def serve(operations, options):
    """Answer Prometheus, if the options say where."""
    if not options.metrics_port:
        return
    registry = prometheus_client.CollectorRegistry()
    registry.register(REGISTRY)
    registry.register(States(operations))
    try:
        prometheus_client.start_http_server(
            options.metrics_port, options.metrics_host, registry)
    except OSError as exc:
        LOG.warning('%s:%d: no figures for Prometheus here: %s',
                    options.metrics_host, options.metrics_port, exc)
