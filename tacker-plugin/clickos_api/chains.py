# SPDX-License-Identifier: Apache-2.0
"""The counters of port chains."""

from clickos_api import errors
from clickos_api import policy

HOST = 'binding:host_id'


class Chains:
    """Reads the counters of a chain from the switch of its host.

    :param cloud: ownership.Cloud
    :param agent: rpc.Agent
    :param rules: policy.Policy
    """

    def __init__(self, cloud, agent, rules):
        self._cloud = cloud
        self._agent = agent
        self._policy = rules

    def counters(self, context, chain_id):
        """Return the chain's counters and those of its hops, in order."""
        chain = self._get('port_chains', chain_id, context.auth_token)
        self._policy.require(context, policy.CHAIN_SHOW, chain['project_id'])
        return self._agent.chain_counters(self._host(chain), chain['id'])

    def _host(self, chain):
        """Return the host of the first hop that has a port pair."""
        for group in chain['port_pair_groups']:
            for pair in self._get('port_pair_groups', group)['port_pairs']:
                port = self._get('port_pairs', pair)['ingress']
                host = self._port_host(port)
                if host:
                    return host
        raise errors.Dead(f'port chain {chain["id"]}: no port of its hops is'
                          ' on a host', code='not-active')

    def _port_host(self, port_id):
        return self._ask(f'/v2.0/ports/{port_id}', 'port').get(HOST)

    def _get(self, kind, key, token=None):
        return self._ask(f'/v2.0/sfc/{kind}/{key}', kind[:-1], token)

    def _ask(self, path, wanted, token=None):
        not_found = errors.NotFound(f'{path}: could not be found',
                                    code='no-such-chain')
        return self._cloud.neutron(path, token, not_found)[wanted]
