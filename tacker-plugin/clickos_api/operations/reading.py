# SPDX-License-Identifier: Apache-2.0
"""Reads of handlers: one, or several in one request to the guest's host."""

import time

from clickos_api import errors
from clickos_api.state import values


class Reading:
    """Reads for callers that the policy lets read.

    :param service: service.Service
    """

    def __init__(self, service):
        self._service = service
        self.values = values.Values()

    def list(self, server):
        """List the handlers of a guest."""
        fused, hop = self._service.fusing.of_hop(server) or (server, None)
        found = self._ask(fused, self._service.agent.handler_list)
        if hop is None:
            return found
        return [{**each, 'name': each['name'].removeprefix(hop.prefix)}
                for each in found if each['name'].startswith(hop.prefix)]

    def ports(self, server):
        """List the ports of a guest."""
        return self._ask(server, self._service.agent.port_list)

    def _ask(self, server, method):
        with self._service.bulkhead.read(server):
            return self._service.ask(server, method)

    def one(self, server, read, max_age_s=None):
        """Return (value, age in seconds) of a handler; see several()."""
        return self._read(server, [read], max_age_s, self._ask_one)[read]

    def several(self, server, reads, max_age_s=None):
        """Return [(read, (value, age in seconds) or errors.ApiError)].

        :param reads: list of states.Read
        :param max_age_s: how old a value may be; None for new ones. An
            answer for a parameter is always new
        """
        found = self._read(server, list(dict.fromkeys(reads)), max_age_s,
                           self._ask_several)
        return [(read, found[read]) for read in reads]

    def _read(self, server, reads, max_age_s, ask):
        """Return {read: (value, age) or errors.ApiError}."""
        found = {}
        for where, inner in self._places(server, reads):
            found |= self._kept(where, inner, max_age_s)
            rest = {read: there for read, there in inner.items()
                    if read not in found}
            if rest:
                found |= self._in_turn(where, rest, max_age_s, ask)
        return found

    def _kept(self, where, inner, max_age_s):
        """Return what is kept of the guest that would answer.

        The same handler has another guest when a chain is fused.
        """
        names = {read: there.name for read, there in inner.items()
                 if not read.parameter}
        kept = {} if max_age_s is None else self.values.get(
            where.id, list(names.values()), max_age_s)
        return {read: kept[name] for read, name in names.items()
                if name in kept}

    def _places(self, server, reads):
        """Return [(Server, {read: read there})]: of a fused chain's hop."""
        fused, hop = self._service.fusing.of_hop(server) or (None, None)
        there = {read: read._replace(name=hop.in_fused(read.name))
                 for read in reads if hop and hop.in_fused(read.name)}
        here = {read: read for read in reads if read not in there}
        return [pair for pair in ((fused, there), (server, here)) if pair[1]]

    def _in_turn(self, where, inner, max_age_s, ask):
        """Ask the guest when it is this read's turn.

        Another read may have brought the values meanwhile.
        """
        with self._service.bulkhead.read(where):
            kept = self._kept(where, inner, max_age_s)
            rest = {read: there for read, there in inner.items()
                    if read not in kept}
            return kept | (self._asked(where, rest, max_age_s, ask)
                           if rest else {})

    def _asked(self, where, inner, max_age_s, ask):
        asked_s = time.monotonic()
        answers = dict(zip(inner, ask(where, list(inner.values()))))
        values_now = {read: answer for read, answer in answers.items()
                      if not isinstance(answer, errors.ApiError)}
        if max_age_s is not None:
            self.values.keep(where.id, {
                inner[read].name: value for read, value in values_now.items()
                if not read.parameter}, asked_s)
        return answers | {read: (value, 0)
                          for read, value in values_now.items()}

    def _ask_one(self, server, reads):
        agent = self._service.agent
        return [self._service.ask(server, agent.handler_read, reads[0])]

    def _ask_several(self, server, reads):
        agent = self._service.agent
        return self._service.ask(server, agent.handlers_read, reads)
