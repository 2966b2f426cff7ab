# SPDX-License-Identifier: Apache-2.0
"""Figures of this agent and its cosmosd for Prometheus.

The agent asks cosmosd at each scrape, so cosmosd needs no port.
"""

import collections

from clickos_client import release
from cosmos_client import CosmosError
from oslo_log import log as logging
import prometheus_client
from prometheus_client import core

LOG = logging.getLogger(__name__)

REGISTRY = prometheus_client.CollectorRegistry()
CALLS = prometheus_client.Counter(
    'clickos_agent_calls', 'Answers to clickos-api, by method and error code',
    ('method', 'code'), registry=REGISTRY)
BUILD = prometheus_client.Info(
    'clickos_agent_build', 'The release of clickos-agent', registry=REGISTRY)
BUILD.info({'version': release.version()})
SECONDS = prometheus_client.Histogram(
    'clickos_agent_call_seconds', 'Duration of calls by clickos-api',
    ('method',), registry=REGISTRY,
    buckets=(.005, .01, .02, .05, .1, .2, .5, 1, 2, 5, 15))

#: Fields of cosmosd's verb host, and what they are.
_HOST = {
    'memory_mib': 'MiB that guests may use together',
    'memory_used_mib': 'MiB that guests use',
    'max_guests': 'Guests that the host may have',
    'pooled': 'Booted guests that wait for a configuration',
    'uptime_s': 'Seconds since cosmosd started',
}


class Cosmosd:
    """Figures of the host and its guests, from cosmosd.

    :param client: CosmosClient
    """

    def __init__(self, client):
        self._client = client

    def collect(self):
        """Give the families of figures."""
        up = core.GaugeMetricFamily('clickos_cosmosd_up',
                                    'Whether cosmosd answers')
        try:
            host = self._client.call('host')
            guests = self._client.call('list')['guests']
        except CosmosError:
            up.add_metric([], 0)
            yield up
            return
        up.add_metric([], 1)
        yield up
        yield core.InfoMetricFamily(
            'clickos_cosmosd_build', 'The release of cosmosd and its host',
            {'version': host['version'], 'host_kind': host['host_kind']})
        for field, text in _HOST.items():
            yield core.GaugeMetricFamily(f'clickos_cosmosd_{field}', text,
                                         host[field])
        yield _by('guests', 'Guests by state', 'state', collections.Counter(
            guest['state'] for guest in guests))
        yield core.GaugeMetricFamily(
            'clickos_cosmosd_guests_held', 'Guests whose ports are held down',
            sum(bool(guest.get('held')) for guest in guests))
        yield _by('faults', 'What guests need and the host lacks', 'part',
                  {fault['part']: 1 for fault in host['faults']})


def _by(name, text, label, counts):
    family = core.GaugeMetricFamily(f'clickos_cosmosd_{name}', text,
                                    labels=[label])
    for value, count in sorted(counts.items()):
        family.add_metric([value], count)
    return family


class Endpoint:
    """Serves the figures; a part of the agent.

    :param host: address
    :param port: None for no endpoint, 0 for one that the system chooses
    """

    def __init__(self, client, host, port):
        self._client, self._host, self._port = client, host, port
        self._server = None

    def start(self):
        """Begin to answer Prometheus."""
        if self._port is None:
            return
        registry = prometheus_client.CollectorRegistry()
        registry.register(REGISTRY)
        registry.register(Cosmosd(self._client))
        self._server, self._thread = prometheus_client.start_http_server(
            self._port, self._host, registry)

    @property
    def port(self):
        """The port of an endpoint that answers."""
        return self._server.server_port

    def stop(self):
        """Stop answering."""
        if self._server is not None:
            self._server.shutdown()
            self._server.server_close()

    def wait(self):
        """Wait until the endpoint has stopped."""
        if self._server is not None:
            self._thread.join()
