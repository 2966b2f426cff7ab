# SPDX-License-Identifier: Apache-2.0
"""The counters of port chains."""

from clickos_api import errors

HOST = 'binding:host_id'


class Chains:
    """Reads the counters of a chain from the switches of its hosts.

    :param cloud: ownership.Cloud
    :param agent: rpc.Agent
    """

    def __init__(self, cloud, agent):
        self._cloud = cloud
        self._agent = agent

    def counters(self, chain):
        """Return the chain's counters and those of its hops, in order.

        :param chain: as Neutron shows it
        """
        return _total([self._agent.chain_counters(host, chain['id'])
                       for host in self._hosts(chain)])

    def _hosts(self, chain):
        """Return the hosts of the chain's port pairs and classifiers."""
        pairs = [pair for group in chain['port_pair_groups']
                 for pair in self._get('port_pair_groups',
                                       group)['port_pairs']]
        hosts = {self._port_host(self._get('port_pairs', pair)['ingress'])
                 for pair in pairs} - {None, ''}
        if not hosts:
            raise errors.Dead(f'port chain {chain["id"]}: no port of its hops'
                              ' is on a host', code='not-active')
        ports = [self._get('flow_classifiers', flow)['logical_source_port']
                 for flow in chain['flow_classifiers']]
        hosts |= {self._port_host(port) for port in ports if port}
        return sorted(hosts - {None, ''})

    def _port_host(self, port_id):
        return self._ask(f'/v2.0/ports/{port_id}', 'port').get(HOST)

    def _get(self, kind, key):
        return self._ask(f'/v2.0/sfc/{kind}/{key}', kind[:-1])

    def _ask(self, path, wanted):
        not_found = errors.NotFound(f'{path}: could not be found',
                                    code='no-such-chain')
        return self._cloud.neutron(path, None, not_found)[wanted]


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
