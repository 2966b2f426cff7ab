# SPDX-License-Identifier: Apache-2.0
"""Guests as clickos_client.flows takes them."""

import functools

from clickos_client import flows

from clickos_api import errors


class Guest:
    """A guest that sends or receives flows.

    :param name: the id of its server
    :param agent: rpc.Agent
    :param ask: calls a method of the agent for this guest
    """

    def __init__(self, name, agent, ask):
        self.name = name
        self._list = functools.partial(ask, agent.handler_list)
        self.read = functools.partial(ask, agent.flows_read)
        self.write = functools.partial(ask, agent.flows_write)

    def list(self):
        """Return the names of the handlers that can be written."""
        return [each['name'] for each in self._list() if each['write']]


def transfer(source, targets):
    """Let guests go on with the flows of another one; return how many.

    :raises errors.ApiError: (code flows) if they cannot take all
    """
    try:
        return flows.transfer(source, targets)
    except flows.FlowsError as exc:
        raise errors.ApiError(str(exc), code='flows', status=409)
