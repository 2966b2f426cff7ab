# SPDX-License-Identifier: Apache-2.0
"""Keeps the chains of the host's switch as Neutron has them (ADR 0032)."""

import ipaddress
import threading

from cosmos_client import CosmosError
from oslo_log import log as logging
from oslo_utils import uuidutils

from clickos_agent import ports

LOG = logging.getLogger(__name__)

#: What chain-list says beyond the arguments of chain-set.
_FIGURES = ('counters', 'hop_counters', 'live_pairs', 'hosts', 'is_changing',
            'restored')
#: Of valed's error while it has no port.
_NO_SWITCH = 'no-such-switch'


class Chains:
    """Compares the switch's chains with Neutron's port chains.

    Chains whose name is no UUID are an operator's; they stay.
    """

    def __init__(self, client, neutron, record):
        """Compare the switch's chains with Neutron's port chains.

        :param client: CosmosClient
        :param neutron: ports.Neutron
        :param record: record.Record
        """
        self._client = client
        self._neutron = neutron
        self._record = record
        #: Two loops of the agent set chains.
        self._lock = threading.Lock()
        self._compared = False
        #: Chains that may have been in force before this agent started.
        self._unsure = set()
        self._set = {}
        self._reasons = {}
        #: Why the switch refused chains at the last try.
        self._refused = {}
        #: Chains that were in force, and that a new switch does not have.
        self._lost = {}
        #: Those of them that are logged.
        self._noted = set()

    def reason(self, name):
        """Return why a chain is not ready, as Neutron said last, or None."""
        return self._reasons.get(name)

    def run_once(self):
        """Set and remove chains until the switch has Neutron's.

        :raises: ports.NeutronUnavailable, CosmosError
        """
        with self._lock:
            self._compare()

    def restore(self):
        """Set chains that the switch lost, before rules open its ports.

        Packets pass the functions of a chain that a new switch does not have.
        So ports stay closed whose packets enter a chain that it refuses.

        :returns: set of (switch, name of a port), and of (switch, segment)
            for all ports of a segment
        :raises: ports.NeutronUnavailable, CosmosError
        """
        with self._lock:
            if (not self._compared or self._refused
                    or self._set.keys() - self._known()):
                self._compare()
            return {entry for chain in self._lost.values()
                    for entry in _entries(chain)}

    def _compare(self):
        try:
            chains, kept, self._reasons = self._neutron.chains()
        except ports.NeutronUnavailable:
            self._restore_as_they_were()
            raise
        wanted = {chain['chain']: chain for chain in chains}
        known = self._known()
        if not self._compared:
            self._set = {name: chain for name, chain
                         in self._record.load().items() if name not in known}
            self._unsure = wanted.keys() - known.keys()
        # One that is not ready fails closed: a new switch gets the definition
        # that was in force.
        again = {name: self._set[name] for name in
                 (kept.keys() & self._set.keys()) - wanted.keys()
                 - known.keys() if not _exceeds(self._set[name], kept[name])}
        # The definitions in force of the others stay for now. Those that the
        # switch had come first, because its number of chains is limited.
        both = wanted | again
        new = {name for name in sorted(both, key=lambda n: n not in self._set)
               if self._changes(name, both[name], known)}
        rights = kept | {name: _rights(wanted[name])
                         for name in wanted.keys() - new}
        for name in known.keys() - new:
            if name not in rights or _exceeds(known[name], rights[name]):
                self._client.call('chain-remove', switch=known[name]['switch'],
                                  chain=name)
                self._set.pop(name, None)
                LOG.info('Chain %s is removed', name)
            else:
                # An agent that has started since knows it from now on.
                self._set.setdefault(name, _definition(known[name]))
        # A switch that started again does not have those to remove.
        for name in self._set.keys() - both.keys() - known.keys():
            del self._set[name]
        for name in self._refused.keys() - both.keys():
            del self._refused[name]
        self._unsure &= self._refused.keys()
        self._note_lost({name: wanted.get(name, self._set[name])
                         for name in self._set.keys() - known.keys() - new})
        self._compared = True
        self._record.save(self._set)

    def _restore_as_they_were(self):
        """Set lost chains without Neutron's word: no change is known of.

        What an earlier agent kept may be older than their rights, and so is
        a definition whose successor the switch refused.
        """
        if self._compared:
            last = self._set | self._lost
            for name in self._set.keys() - self._known().keys():
                self._apply(name, last[name], restored=True)

    def _note_lost(self, lost):
        refused = {name for name in lost if not self._waits(name)}
        for name in refused - self._noted:
            LOG.error('Chain %s was in force, and the switch refuses it: '
                      'ports whose packets enter it stay closed', name)
        self._lost, self._noted = lost, refused

    def _waits(self, name):
        """Return whether a chain's switch has no port yet, as at a boot."""
        return _NO_SWITCH in self._refused.get(name, '')

    def _known(self):
        """Return Neutron's chains in the switch."""
        return {chain['chain']: chain
                for chain in self._client.call('chain-list')['chains']
                if uuidutils.is_uuid_like(chain['chain'])}

    def _changes(self, name, chain, known):
        """Set a chain that the switch has not.

        :returns: whether the switch took a new definition
        """
        if name not in known and (name in self._set or name in self._unsure):
            # The switch has started again, maybe together with the agent.
            return self._apply(name, chain, restored=True)
        if name not in known or self._set.get(name) != chain:
            return self._apply(name, chain)
        self._refused.pop(name, None)
        return False

    def _apply(self, name, chain, **state):
        """Set a chain.

        :returns: whether the switch took it
        """
        try:
            self._client.call('chain-set', **(chain | state))
        except CosmosError as e:
            before = self._refused.get(name)
            self._refused[name] = str(e)
            if str(e) != before and not self._waits(name):
                LOG.warning('Chain %(name)s: %(why)s',
                            {'name': name, 'why': e})
            return False
        self._refused.pop(name, None)
        self._set[name] = chain
        LOG.info('Chain %(name)s has %(hops)d hops now',
                 {'name': name, 'hops': len(chain['hops'])})
        return True


def _definition(info):
    """Return what chain-set got, of what chain-list says."""
    return {key: value for key, value in info.items() if key not in _FIGURES}


def _entries(chain):
    """Return where packets enter a chain, as restore() does."""
    ports = ((flow.get('source_port') or flow.get('destination_port'))
             for flow in chain.get('classifiers', ()))
    return {(chain['switch'], port or chain.get('segment')) for port in ports}


def _networks(chain):
    """Return the networks from which a chain lets its hops send."""
    senders = (network for classifier in chain.get('classifiers', ())
               for network in classifier.get('senders', ()))
    return [*chain.get('nat', ()), *senders]


def _place(chain):
    return chain['switch'], chain.get('segment')


def _rights(chain):
    """Return what a definition of a chain has, as ports.Rights."""
    return ports.Rights(_networks(chain), {_place(chain)})


def _exceeds(chain, rights):
    """Return whether a chain has more than it may.

    An address may have another owner by now, and a segment another network.

    :param rights: ports.Rights
    """
    if rights.places is not None and _place(chain) not in rights.places:
        return True
    if rights.networks is None:
        return False
    allowed = {*map(_network, rights.networks)}
    return not allowed.issuperset(map(_network, _networks(chain)))


def _network(text):
    return ipaddress.ip_network(text, strict=False)
