# SPDX-License-Identifier: Apache-2.0
"""Heat for one suite: its packages, tables, users, and its compute host."""

from clickos_lab import accounts
from clickos_lab.config import heat as config
from clickos_lab.config import options
from clickos_lab import databases
from clickos_lab import log
from clickos_lab import openstack
from clickos_lab import paths
from clickos_lab import shell
from clickos_lab import stamps
from clickos_lab import venv

REQUIREMENTS = paths.REPO / 'devstack/lab/requirements-heat.txt'
#: Seconds until Nova and Placement know the host.
_LIMIT_S = 60
_SERVICE, _TYPE, _PATH = 'heat', 'orchestration', '/v1/$(project_id)s'
#: No such agent runs. Neutron believes that its last report comes from then.
_AGENT = 'Open vSwitch agent'
_REPORTED = '2199-01-01 00:00:00'
_CONFIGURATIONS = '{"bridge_mappings": {"%s": "br"}, "tunnel_types": []}'


def packages(state):
    """Return the folder of Heat's packages."""
    return config.packages(state)


def command(state, program):
    """Return the command of one of Heat's programs."""
    return [state.tool('python'), packages(state) / 'bin' / program,
            '--config-file', state.etc / 'heat/heat.conf']


def install(state):
    """Install Heat's packages, if they changed."""
    wanted = stamps.digest([REQUIREMENTS, openstack.requirements()])
    stamp = packages(state) / 'requirements.stamp'
    if stamps.fresh(stamp, wanted):
        return
    with log.step('Heat'):
        shell.run([venv.uv(state), 'pip', 'install', '--no-deps', '--python',
                   state.tool('python'), '--target', packages(state),
                   '-r', REQUIREMENTS], state.log / 'venv.log',
                  timeout_s=3600)
        shell.output(['chmod', '-R', 'go+rX', packages(state)])
        stamp.write_text(wanted)


def prepare(state, settings):
    """Make Heat's tables, and its user and endpoints in keystone."""
    from clickos_lab.cloud import catalog   # needs the virtual environment
    from clickos_lab.cloud import sessions
    home = str(accounts.home(state, 'heat'))
    shell.run([*accounts.prefix(state, settings, 'heat'),
               *command(state, 'heat-manage'), 'db_sync'],
              state.log / 'databases.log', cwd='/',
              env=shell.environment(state, HOME=home, TMPDIR=home,
                                    PYTHONPATH=str(packages(state))))
    catalog.add(sessions.admin(settings).identity, settings, _SERVICE, _TYPE,
                _PATH)


def ensure(state, settings):
    """Make the compute host known to Nova and Neutron.

    :raises LabError: if its nova-compute does not report in time
    """
    from clickos_lab.cloud import compute
    from clickos_lab.cloud import sessions
    admin = sessions.admin(settings)
    compute.wait(lambda: any(
        each.state == 'up' for each in admin.compute.services(
            binary='nova-compute', host=config.HOST)),
        _LIMIT_S, f'{config.COMPUTE} reports up')
    shell.run([state.tool('nova-manage'), '--config-file',
               state.etc / 'nova/nova.conf', 'cell_v2', 'discover_hosts'],
              state.log / 'databases.log', env=shell.environment(state))
    compute.wait(lambda: any(
        any(admin.placement.resource_provider_inventories(each))
        for each in admin.placement.resource_providers(name=config.HOST)),
        _LIMIT_S, f'Placement has the inventory of {config.HOST}')
    network = options.DEFAULTS['CLICKOS_PHYSICAL_NETWORK']
    databases.execute(state, ''.join((
        _forget_agent(),
        'insert into neutron.agents (id, agent_type, `binary`, topic, host, '
        'admin_state_up, created_at, started_at, heartbeat_timestamp, '
        '`load`, configurations) values (uuid(), ',
        f"'{_AGENT}', 'none', 'N/A', '{config.HOST}', 1, now(), now(), "
        f"'{_REPORTED}', 0, '{_CONFIGURATIONS % network}');")))


def forget(state, settings):
    """Remove the host and the endpoints: other suites know neither."""
    from clickos_lab.cloud import sessions
    admin = sessions.admin(settings)
    databases.execute(state, _forget_agent())
    for service in admin.compute.services(host=config.HOST):
        admin.compute.delete_service(service)
    service = admin.identity.find_service(_SERVICE)
    if service:
        admin.identity.delete_service(service)


def _forget_agent():
    return ' '.join(('delete from neutron.agents',
                     f"where host = '{config.HOST}';"))
