# SPDX-License-Identifier: Apache-2.0
"""Who may do what."""

from oslo_policy import opts as policy_opts
from oslo_policy import policy

from clickos_api import errors

LIST = 'clickos:handler:list'
READ = 'clickos:handler:read'
WRITE = 'clickos:handler:write'
FLOWS_GIVE = 'clickos:flows:give'
CONFIG_REPLACE = 'clickos:configuration:replace'
PORT_LIST = 'clickos:port:list'
EVENT_LIST = 'clickos:event:list'
PORT_ROLES = 'clickos:port:set_roles'
CHAIN_SHOW = 'clickos:chain:show'
CHAIN_FUSE = 'clickos:chain:fuse'
STATE_SHOW = 'clickos:desired_state:show'
STATE_DELETE = 'clickos:desired_state:delete'
STATE_RESTORE = 'clickos:desired_state:restore'
STATE_CREATE = 'clickos:desired_state:create'
STATE_START = 'clickos:desired_state:start'
CHANGE_SHOW = 'clickos:change:show'
SECRET_CREATE = 'clickos:secret:create'
SECRET_LIST = 'clickos:secret:list'
SECRET_SHOW = 'clickos:secret:show'
SECRET_DELETE = 'clickos:secret:delete'
SECRET_READ = 'clickos:secret:read'
CATALOG_SHOW = 'clickos:catalog:show'

OWNER_READER = 'role:reader and project_id:%(project_id)s'
OWNER_MEMBER = 'role:member and project_id:%(project_id)s'
NETWORK_OWNER = f'{OWNER_MEMBER} and project_id:%(network_project_id)s'
SERVICE = 'role:service or role:admin'
ADMIN = 'role:admin'

_HANDLERS = '/v1/{servers or vnfs}/{id}/handlers'
_CHANGES = '/v1/{servers or vnfs}/{id}/changes'
_FUSION = '/v1/chains/{id}/fusion'
_STATES = '/v1/states/{id}'
_STATE = '/v1/{servers or vnfs}/{id}/desired-state'


def _rule(name, check, description, *operations):
    return policy.DocumentedRuleDefault(
        name, check, description,
        [{'method': method, 'path': path} for method, path in operations],
        scope_types=['project'])


RULES = [
    _rule(LIST, OWNER_READER, 'List the handlers of a guest.',
          ('GET', _HANDLERS)),
    _rule(READ, OWNER_READER, 'Read a handler of a guest.',
          ('GET', _HANDLERS + '/{name}'),
          ('POST', '/v1/{servers or vnfs}/{id}/reads')),
    _rule(WRITE, OWNER_MEMBER, 'Write handlers of a guest.',
          ('PUT', _HANDLERS + '/{name}'), ('POST', _HANDLERS)),
    _rule(CONFIG_REPLACE, OWNER_MEMBER,
          'Replace the configuration of a guest that runs on.',
          ('PUT', '/v1/{servers or vnfs}/{id}/configuration')),
    _rule(FLOWS_GIVE, OWNER_MEMBER,
          'Let guests go on with the flows of another one.',
          ('POST', '/v1/{servers or vnfs}/{id}/flows')),
    _rule(STATE_SHOW, f'({OWNER_READER}) or {SERVICE}',
          'Show what is written again when a guest starts again.',
          ('GET', _STATE), ('GET', _STATES)),
    _rule(STATE_DELETE, f'({OWNER_MEMBER}) or {ADMIN}',
          'Forget what is written again when a guest starts again.',
          ('DELETE', _STATE), ('DELETE', _STATES)),
    _rule(STATE_RESTORE, OWNER_MEMBER,
          'Bring an earlier revision of a guest back.', ('POST', _STATE)),
    _rule(STATE_CREATE, OWNER_MEMBER,
          'Make a state that user_data refers to, or give one another'
          ' configuration.',
          ('POST', '/v1/states'), ('PUT', _STATES)),
    _rule(STATE_START, SERVICE,
          'Note that a guest starts with a state. nova-compute needs it.',
          ('POST', _STATES + '/starts')),
    _rule(CHANGE_SHOW, OWNER_READER,
          'Show the verdicts about changes of a guest.',
          ('GET', _CHANGES), ('GET', _CHANGES + '/{number}')),
    _rule(CATALOG_SHOW, 'role:reader',
          'List the packages of the catalog and get one.',
          ('GET', '/v1/catalog'), ('GET', '/v1/catalog/{package}')),
    _rule(SECRET_CREATE, OWNER_MEMBER, 'Make a secret.',
          ('POST', '/v1/secrets')),
    _rule(SECRET_LIST, OWNER_READER, 'List secrets, without their values.',
          ('GET', '/v1/secrets')),
    _rule(SECRET_SHOW, OWNER_READER, 'Show a secret, without its value.',
          ('GET', '/v1/secrets/{id}')),
    _rule(SECRET_DELETE, OWNER_MEMBER, 'Delete a secret.',
          ('DELETE', '/v1/secrets/{id}')),
    _rule(SECRET_READ, 'role:service',
          'Read the values of the secrets that a state refers to.'
          ' nova-compute needs it.',
          ('GET', _STATE + '?secrets=true'),
          ('GET', _STATES + '?secrets=true')),
    _rule(PORT_LIST, OWNER_READER,
          'List the ports of a guest with what the switch counted.',
          ('GET', '/v1/{servers or vnfs}/{id}/ports')),
    _rule(EVENT_LIST, OWNER_READER,
          'List the starts of a guest, and why one failed.',
          ('GET', '/v1/{servers or vnfs}/{id}/events')),
    _rule(PORT_ROLES, f'({NETWORK_OWNER}) or ({ADMIN})',
          'Let a port send what only servers send, such as answers of DHCP. By'
          ' default its network has to be of the same project.',
          ('PUT', '/v1/ports/{id}/roles')),
    _rule(CHAIN_SHOW, OWNER_READER, 'Show the counters of a port chain.',
          ('GET', '/v1/chains/{id}'), ('GET', _FUSION)),
    _rule(CHAIN_FUSE, OWNER_MEMBER,
          'Let one guest answer for all hops of a chain, or no longer.',
          ('PUT', _FUSION), ('DELETE', _FUSION)),
]


def list_rules():
    """List the rules for oslo.policy's sample generator."""
    return RULES


class Policy:
    """The rules in force: the defaults above and the operator's file."""

    def __init__(self, conf):
        policy_opts.set_defaults(conf)
        self._enforcer = policy.Enforcer(conf)
        self._enforcer.register_defaults(RULES)

    def allows_any(self, context, rule):
        """Tell whether the caller may do this whosever the server is."""
        return self._enforcer.authorize(rule, {}, context)

    def require(self, context, rule, project_id, **more):
        """Let pass who may do this to a server or chain of project_id.

        :param more: what else a rule may refer to
        :raises errors.Forbidden: if the caller may not
        """
        target = {'project_id': project_id, **more}
        if not self._enforcer.authorize(rule, target, context):
            raise errors.Forbidden(
                f'policy does not allow {rule} to be performed in'
                f' project {project_id}')
