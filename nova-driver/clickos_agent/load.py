# SPDX-License-Identifier: Apache-2.0
"""How many packets the switch moves for the guests of this host."""

import time

from cosmos_client import CosmosError
from oslo_log import log as logging

LOG = logging.getLogger(__name__)

_PACKETS = ('rx_packets', 'tx_packets')
_DROPPED = 'dropped_'


class Load:
    """Measures from one question to the next."""

    def __init__(self, client):
        """Ask cosmosd.

        :param client: CosmosClient
        """
        self._client = client
        self._before = None

    def measure(self):
        """Compare the counters of all ports with those of the last call.

        :returns: dict packets_per_s, dropped_per_s; None the first time, and
            if cosmosd does not answer
        """
        try:
            now = time.monotonic(), self._counters()
        except CosmosError as e:
            LOG.warning('The load of the switch is not known: %s', e)
            now = None
        before, self._before = self._before, now
        return _rates(before, now) if before and now else None

    def _counters(self):
        """:returns: (packets, drops) by guest, its start and device"""
        found = {}
        for guest in self._client.call('list')['guests']:
            for port in self._ports(guest['uuid']):
                counters = port['counters']
                found[guest['uuid'], guest['domid'], port['devid']] = (
                    sum(counters[name] for name in _PACKETS),
                    sum(count for name, count in counters.items()
                        if name.startswith(_DROPPED)))
        return found

    def _ports(self, uuid):
        try:
            return self._client.call('vif-list', uuid=uuid)['ports']
        except CosmosError as e:    # it may have ended meanwhile
            LOG.debug('Guest %(uuid)s: %(why)s', {'uuid': uuid, 'why': e})
            return []


def _rates(before, now):
    """:returns: rates of the ports that were there both times"""
    seconds = max(now[0] - before[0], 1e-3)
    packets, dropped = (
        sum(max(0, count[kind] - before[1][port][kind])
            for port, count in now[1].items() if port in before[1])
        for kind in (0, 1))
    return {'packets_per_s': round(packets / seconds),
            'dropped_per_s': round(dropped / seconds)}
