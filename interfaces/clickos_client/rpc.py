# SPDX-License-Identifier: Apache-2.0
"""RPC from clickos-api to clickos-agent (docs/interfaces.md)."""

#: Served by the agent of each host; ``server`` is the host's name.
TOPIC = 'clickos-agent'
VERSION = '1.7'
#: The version that each method came with, if not with the oldest.
OLDEST = '1.1'
SINCE = {'handler_write': '1.3', 'config_replace': '1.3',
         'changes_settle': '1.3', 'flows_read': '1.4',
         'flows_write': '1.4', 'handlers_read': '1.6'}
#: The version that an argument came with; sent only if it says something.
ARGUMENTS = {'has_secrets': '1.5', 'param': '1.7', 'params': '1.7'}


def needed(method, arguments):
    """Return the oldest version with a method and its arguments."""
    return next((ARGUMENTS[name] for name in arguments if name in ARGUMENTS),
                SINCE.get(method, OLDEST))
