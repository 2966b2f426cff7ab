# SPDX-License-Identifier: Apache-2.0
"""Keeps the chains of the host's switch as Neutron has them (ADR 0033)."""

from cosmos_client import CosmosError
from oslo_log import log as logging
from oslo_utils import uuidutils

LOG = logging.getLogger(__name__)


class Chains:
    """Compares the switch's chains with Neutron's port chains.

    Chains whose name is no UUID are an operator's; they stay.
    """

    def __init__(self, client, neutron):
        """Compare the switch's chains with Neutron's port chains.

        :param client: CosmosClient
        :param neutron: ports.Neutron
        """
        self._client = client
        self._neutron = neutron
        self._set = {}

    def look(self):
        """Set and remove chains until the switch has Neutron's.

        :raises: ports.NeutronUnavailable, CosmosError
        """
        chains, kept = self._neutron.chains()
        wanted = {chain['chain']: chain for chain in chains}
        known = {chain['chain']: chain['switch']
                 for chain in self._client.chain_list()['chains']
                 if uuidutils.is_uuid_like(chain['chain'])}
        for name, chain in wanted.items():
            if name in self._set and name not in known:
                # The switch has started again.
                self._apply(name, chain, restored=True)
            elif name not in known or self._set.get(name) != chain:
                self._apply(name, chain)
        for name in known.keys() - wanted.keys() - kept:
            self._client.chain_remove(known[name], name)
            self._set.pop(name, None)
            LOG.info('Chain %s is removed', name)

    def _apply(self, name, chain, **state):
        try:
            self._client.chain_set(chain | state)
            self._set[name] = chain
            LOG.info('Chain %(name)s has %(hops)d hops now',
                     {'name': name, 'hops': len(chain['hops'])})
        except CosmosError as e:
            LOG.warning('Chain %(name)s: %(why)s', {'name': name, 'why': e})
