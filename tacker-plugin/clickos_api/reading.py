# SPDX-License-Identifier: Apache-2.0
"""Reads of handlers: one, or several in one request to the guest's host."""

import time

from clickos_api import errors
from clickos_api import values


class Reading:
    """Reads for callers that the policy lets read.

    :param operations: handlers.Handlers
    """

    def __init__(self, operations):
        self._operations = operations
        self.values = values.Values()

    def one(self, server, name, max_age_s=None):
        """Return (value, age in seconds) of a handler; see several()."""
        return self._read(server, [name], max_age_s, self._ask_one)[name]

    def several(self, server, names, max_age_s=None):
        """Return [(name, (value, age in seconds) or errors.ApiError)].

        :param max_age_s: how old a value may be; None for new ones
        """
        found = self._read(server, list(dict.fromkeys(names)), max_age_s,
                           self._ask_several)
        return [(name, found[name]) for name in names]

    def _read(self, server, names, max_age_s, ask):
        """Return {name: (value, age) or errors.ApiError}."""
        found = {}
        for where, inner in self._places(server, names):
            found |= self._kept(where, inner, max_age_s)
            rest = {name: there for name, there in inner.items()
                    if name not in found}
            if rest:
                found |= self._in_turn(where, rest, max_age_s, ask)
        return found

    def _kept(self, where, inner, max_age_s):
        """Return what is kept of the guest that would answer.

        The same handler has another guest when a chain is fused.
        """
        kept = {} if max_age_s is None else self.values.get(
            where.id, list(inner.values()), max_age_s)
        return {name: kept[there] for name, there in inner.items()
                if there in kept}

    def _places(self, server, names):
        """Return [(Server, {name: name there})]: of a fused chain's hop."""
        fused, hop = self._operations.fusing.of_hop(server) or (None, None)
        there = {name: hop.in_fused(name) for name in names
                 if hop and hop.in_fused(name)}
        here = {name: name for name in names if name not in there}
        return [pair for pair in ((fused, there), (server, here)) if pair[1]]

    def _in_turn(self, where, inner, max_age_s, ask):
        """Ask the guest when it is this read's turn.

        Another read may have brought the values meanwhile.
        """
        def read():
            kept = self._kept(where, inner, max_age_s)
            rest = {name: there for name, there in inner.items()
                    if name not in kept}
            return kept | (self._asked(where, rest, max_age_s, ask)
                           if rest else {})
        return self._operations.read_waiting(where, read)

    def _asked(self, where, inner, max_age_s, ask):
        asked_s = time.monotonic()
        answers = dict(zip(inner, ask(where, list(inner.values()))))
        values_now = {name: answer for name, answer in answers.items()
                      if not isinstance(answer, errors.ApiError)}
        if max_age_s is not None:
            self.values.keep(where.id, {
                inner[name]: value for name, value in values_now.items()},
                asked_s)
        return answers | {name: (value, 0)
                          for name, value in values_now.items()}

    def _ask_one(self, server, names):
        agent = self._operations.agent
        return [self._operations.ask(server, agent.handler_read, names[0])]

    def _ask_several(self, server, names):
        agent = self._operations.agent
        return self._operations.ask(server, agent.handlers_read, names)
