# SPDX-License-Identifier: Apache-2.0
"""RPC from clickos-api to clickos-agent (docs/interfaces.md)."""

#: Served by the agent of each host; ``server`` is the host's name.
TOPIC = 'clickos-agent'
VERSION = '1.9'
OLDEST = '1.1'
#: What the agent passes on: the verb of cosmosd that each method is, and the
#: arguments of the verb that a caller may set. The server_id is its uuid.
RELAYED = {
    'handler_list': ('handler-list', {'timeout_ms'}),
    'handler_read': ('handler-read', {'name', 'param', 'timeout_ms'}),
    'handlers_read': ('handlers-read', {'names', 'params', 'timeout_ms'}),
    'handler_write': ('handler-write', {'writes', 'has_secrets', 'change_id',
                                        'timeout_ms'}),
    'flows_write': ('handler-write', {'writes', 'timeout_ms'}),
    'config_replace': ('router-install', {'config', 'config_name',
                                          'change_id', 'timeout_ms'}),
    'changes_fence': ('change-fence', {'number'}),
    'changes_settle': ('change-fence', {'number'}),   # the name before 1.9
    'port_list': ('vif-list', set()),
}
#: Methods by the names that agents of before 1.9 have for them.
_OLD_NAMES = {'changes_fence': 'changes_settle'}
#: The version that each method came with, if not with the oldest.
_SINCE = {'handler_write': '1.3', 'config_replace': '1.3',
          'changes_settle': '1.3', 'flows_read': '1.4',
          'flows_write': '1.4', 'handlers_read': '1.6',
          'changes_fence': '1.9'}
#: The version that an argument came with; sent only if it says something.
_ARGUMENTS = {'has_secrets': '1.5', 'param': '1.7', 'params': '1.7',
              'change_id': '1.8', 'number': '1.8', 'timeout_ms': '1.8'}


def needed(method, arguments):
    """Return the oldest version with a method and its arguments."""
    return max([_SINCE.get(method, OLDEST),
                *(_ARGUMENTS.get(name, OLDEST) for name in arguments)],
               key=order)


def order(version):
    """Return the numbers of a version: 1.10 is above 1.9."""
    return tuple(map(int, version.split('.')))


def calls(method, arguments):
    """Return a call as agents of this release and of earlier ones take it.

    :returns: list of (version, method, arguments), the newest version first
    """
    older_method = _OLD_NAMES.get(method, method)
    forms = [(method, arguments), (older_method, arguments),
             (older_method, _older(arguments))]
    return [(needed(*form), *form) for n, form in enumerate(forms)
            if form not in forms[:n]]


def _older(arguments):
    """Return arguments as agents of before 1.8 take them."""
    found = {**arguments}
    found.pop('timeout_ms', None)
    if 'number' in found:
        found['attempt'] = found.pop('number')
    change = found.pop('change_id', None)
    if change:
        found |= {'attempt': change['number'],
                  'incarnation': change.get('incarnation')}
    return found


def newer(method, arguments):
    """Return arguments in which a service of before 1.8 asks, as of 1.8."""
    found = dict(arguments)
    number = found.pop('attempt', None)
    incarnation = found.pop('incarnation', None)
    if number is None:
        return found
    if method == 'changes_settle':
        return {**found, 'number': number}
    return {**found, 'change_id': change_id(number, incarnation)}


def change_id(number, incarnation=None):
    """Return the id of a change: its number, and the guest's if known."""
    more = {} if incarnation is None else {'incarnation': incarnation}
    return {'number': number, **more}
