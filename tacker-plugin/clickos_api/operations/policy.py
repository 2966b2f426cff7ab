# SPDX-License-Identifier: Apache-2.0
"""Who may do what."""

from oslo_policy import opts as policy_opts
from oslo_policy import policy

from clickos_api import errors

LIST = 'clickos:handler:list'
READ = 'clickos:handler:read'
WRITE = 'clickos:handler:write'
FLOWS_TRANSFER = 'clickos:flows:transfer'
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
LIMIT_SHOW = 'clickos:limit:show'
LIMIT_SET = 'clickos:limit:set'
CATALOG_SHOW = 'clickos:catalog:show'

OWNER_READER = 'role:reader and project_id:%(project_id)s'
OWNER_MEMBER = 'role:member and project_id:%(project_id)s'
NETWORK_OWNER = f'{OWNER_MEMBER} and project_id:%(network_project_id)s'
SERVICE = 'role:service or role:admin'
ADMIN = 'role:admin'


def _rule(name, check, description, former=None):
    """Return a rule; routes.list_rules() adds the operations that name it.

    :param former: its name in the release before 1.0, under which an
        operator's file may still set it
    """
    return policy.RuleDefault(
        name, check, description, scope_types=['project'],
        deprecated_rule=former and policy.DeprecatedRule(
            former, check, deprecated_reason=f'renamed to {name}',
            deprecated_since='1.0'))


RULES = [
    _rule(LIST, OWNER_READER, 'List the handlers of a guest.'),
    _rule(READ, OWNER_READER, 'Read a handler of a guest.'),
    _rule(WRITE, OWNER_MEMBER, 'Write handlers of a guest.'),
    _rule(CONFIG_REPLACE, OWNER_MEMBER,
          'Replace the configuration of a running guest.'),
    _rule(FLOWS_TRANSFER, OWNER_MEMBER,
          'Transfer the flows of a guest to others.', 'clickos:flows:give'),
    _rule(STATE_SHOW, f'({OWNER_READER}) or {SERVICE}',
          'Show the writes that a restart of a guest repeats.'),
    _rule(STATE_DELETE, f'({OWNER_MEMBER}) or {ADMIN}',
          'Forget the writes that a restart of a guest repeats.'),
    _rule(STATE_RESTORE, OWNER_MEMBER,
          'Bring an earlier revision of a guest back.'),
    _rule(STATE_CREATE, OWNER_MEMBER,
          'Make a state that user_data refers to, or give one another'
          ' configuration.'),
    _rule(STATE_START, SERVICE,
          'Note that a guest starts with a state. nova-compute needs it.'),
    _rule(CHANGE_SHOW, OWNER_READER,
          'Show the verdicts about changes of a guest.'),
    _rule(LIMIT_SHOW, OWNER_READER, 'Show limits that guests share.'),
    _rule(LIMIT_SET, OWNER_MEMBER, 'Let guests share limits.'),
    _rule(CATALOG_SHOW, 'role:reader',
          'List the packages of the catalog and get one.'),
    _rule(SECRET_CREATE, OWNER_MEMBER, 'Make a secret.'),
    _rule(SECRET_LIST, OWNER_READER, 'List secrets, without their values.'),
    _rule(SECRET_SHOW, OWNER_READER, 'Show a secret, without its value.'),
    _rule(SECRET_DELETE, OWNER_MEMBER, 'Delete a secret.'),
    _rule(SECRET_READ, 'role:service',
          'Read the values of the secrets that a state refers to.'
          ' nova-compute needs it.'),
    _rule(PORT_LIST, OWNER_READER,
          'List the ports of a guest with what the switch counted.'),
    _rule(EVENT_LIST, OWNER_READER,
          'List the reboots and failed starts of a guest.'),
    _rule(PORT_ROLES, f'({NETWORK_OWNER}) or ({ADMIN})',
          'Let a port send what only servers send, such as answers of DHCP. By'
          ' default its network has to be of the same project.'),
    _rule(CHAIN_SHOW, OWNER_READER, 'Show the counters of a port chain.'),
    _rule(CHAIN_FUSE, OWNER_MEMBER,
          'Let one guest answer for all hops of a chain, or no longer.'),
]


class Policy:
    """The rules in force: the defaults above and the operator's file."""

    def __init__(self, conf):
        policy_opts.set_defaults(conf)
        self._enforcer = policy.Enforcer(conf)
        self._enforcer.register_defaults(RULES)

    def allows_any(self, context, rule):
        """Return whether the caller may do this whosever the server is."""
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
