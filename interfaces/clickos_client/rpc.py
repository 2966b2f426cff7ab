# SPDX-License-Identifier: Apache-2.0
"""RPC from clickos-api to clickos-agent (docs/interfaces.md)."""

#: Served by the agent of each host; ``server`` is the host's name.
TOPIC = 'clickos-agent'
VERSION = '1.6'
#: The version that each method came with, if not with the oldest.
OLDEST = '1.1'
SINCE = {'handler_write': '1.3', 'config_replace': '1.3',
         'changes_settle': '1.3', 'flows_read': '1.4',
         'flows_write': '1.4', 'handlers_read': '1.6'}
#: The version that a method's argument came with; sent only if it is true.
HAS_SECRETS = '1.5'
