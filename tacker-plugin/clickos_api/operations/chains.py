# SPDX-License-Identifier: Apache-2.0
"""The counters of port chains."""

import collections
import threading
import time
from urllib import parse

from clickos_api import errors
from clickos_api.operations import workers

HOST = 'binding:host_id'
#: Ids that one request to Neutron names. A chain has 320 pairs at most.
IDS = 40
#: Seconds for which the hosts of a chain are known, and how many chains.
KEPT_S, _KEPT = 10, 1000
_SFC = '/v2.0/sfc/'


class Chains:
    """Reads the counters of a chain from the switches of its hosts.

    :param cloud: ownership.Cloud
    :param agent: rpc.Agent
    :param bulkhead: workers.Bulkhead, the seats of HTTP's threads
    """

    def __init__(self, cloud, agent, bulkhead):
        self._cloud = cloud
        self._agent = agent
        self._bulkhead = bulkhead
        self._hosts = _Kept()

    def counters(self, chain):
        """Return the chain's counters and those of its hops, in order.

        :param chain: as Neutron shows it
        """
        place = workers.Place(chain['id'], chain['project_id'], 'port chain')
        with self._bulkhead.read(place):
            hosts = self._hosts.of(
                (chain['id'], *chain['port_pair_groups'],
                 *chain['flow_classifiers']),
                lambda: self._find_hosts(chain))
            return _total([self._agent.chain_counters(host, chain['id'])
                           for host in hosts])

    def _find_hosts(self, chain):
        """Return the hosts of the chain's port pairs and classifiers."""
        groups = self._list(_SFC, 'port_pair_groups',
                            chain['port_pair_groups'], 'port_pairs')
        pairs = self._list(_SFC, 'port_pairs', [
            pair for group in groups for pair in group['port_pairs']],
            'ingress')
        flows = self._list(_SFC, 'flow_classifiers',
                           chain['flow_classifiers'], 'logical_source_port')
        inside = {pair['ingress'] for pair in pairs}
        hosts = {port['id']: port.get(HOST) for port in self._list(
            '/v2.0/', 'ports', filter(None, inside.union(
                flow['logical_source_port'] for flow in flows)), HOST)}
        if not any(hosts.get(port) for port in inside):
            raise errors.Dead(f'port chain {chain["id"]}: no port of its hops'
                              ' is on a host', code='not-active')
        return sorted(set(hosts.values()) - {None, ''})

    def _list(self, place, kind, ids, *fields):
        """Return what exists of some ids, by few requests."""
        ids, found = sorted(set(ids)), []
        for at in range(0, len(ids), IDS):
            path = f'{place}{kind}?' + parse.urlencode([
                *(('fields', name) for name in ('id', *fields)),
                *(('id', key) for key in ids[at:at + IDS])])
            found += self._cloud.neutron(path, None, errors.NotFound(
                f'{kind}: could not be found', code='no-such-chain'))[kind]
        return found


class _Kept:
    """The hosts of chains for some seconds: pages ask again and again."""

    def __init__(self, clock=time.monotonic):
        self._clock = clock
        self._lock = threading.Lock()
        self._found = collections.OrderedDict()

    def of(self, key, find):
        """Return the hosts of a key; find them if they are not known."""
        with self._lock:
            hosts, end_s = self._found.get(key, (None, 0))
        if hosts is None or self._clock() >= end_s:
            hosts = find()
            with self._lock:
                self._found.pop(key, None)
                self._found[key] = hosts, self._clock() + KEPT_S
                if len(self._found) > _KEPT:
                    self._found.popitem(last=False)
        return hosts


def _total(answers):
    """Add what the switches of a chain's hosts counted, each its own part."""
    total, *others = answers
    for answer in others:
        _add(total, answer)
        for hop, other in zip(total['hops'], answer['hops']):
            _add(hop, other)
    return total


def _add(counters, others):
    for key in ('packets', 'bytes', 'dropped', 'looped'):
        counters[key] += others[key]
