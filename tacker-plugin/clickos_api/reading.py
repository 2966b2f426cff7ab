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
        where, inner = self._places(server, [name])[name]
        found = self._of_guest(where, [inner], max_age_s, self._ask_one)
        return found[inner]

    def several(self, server, names, max_age_s=None):
        """Return [(name, (value, age in seconds) or errors.ApiError)].

        :param max_age_s: how old a value may be; None for new ones
        """
        places = self._places(server, names)
        found = {}
        for where in {each.id: each for each, _ in places.values()}.values():
            inner = [name for each, name in places.values()
                     if each.id == where.id]
            answers = self._of_guest(where, inner, max_age_s,
                                     self._ask_several)
            found |= {(where.id, key): answers[key] for key in inner}
        return [(name, found[places[name][0].id, places[name][1]])
                for name in names]

    def _places(self, server, names):
        """Return {name: (Server, name there)}: of a fused chain's hop."""
        fused, hop = self._operations.fusing.of_hop(server) or (None, None)
        return {name: (fused, hop.in_fused(name))
                if hop and hop.in_fused(name) else (server, name)
                for name in names}

    def _of_guest(self, server, names, max_age_s, ask):
        """Return {name: (value, age) or errors.ApiError}."""
        if max_age_s is None:
            return self._operations.read_waiting(
                server, lambda: ask(server, names))
        found = self.values.get(server.id, names, max_age_s)
        missing = [name for name in names if name not in found]
        if not missing:
            return found

        def look_again():
            """Another read may have brought them while this one waited."""
            late = self.values.get(server.id, missing, max_age_s)
            rest = [name for name in missing if name not in late]
            return late | (self._kept(server, rest, ask) if rest else {})
        return found | self._operations.read_waiting(server, look_again)

    def _kept(self, server, names, ask):
        asked_s = time.monotonic()
        answers = ask(server, names)
        self.values.keep(server.id, {
            name: answer[0] for name, answer in answers.items()
            if not isinstance(answer, errors.ApiError)}, asked_s)
        return answers

    def _ask_one(self, server, names):
        agent = self._operations.agent
        value, = (self._operations.ask(server, agent.handler_read, name)
                  for name in names)
        return {names[0]: (value, 0)}

    def _ask_several(self, server, names):
        unique = list(dict.fromkeys(names))
        agent = self._operations.agent
        answers = self._operations.ask(server, agent.handlers_read, unique)
        return {name: answer if isinstance(answer, errors.ApiError)
                else (answer, 0) for name, answer in zip(unique, answers)}
