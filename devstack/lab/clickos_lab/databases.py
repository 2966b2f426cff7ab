# SPDX-License-Identifier: Apache-2.0
"""MariaDB's schemas: users, passwords and the services' tables."""

import concurrent.futures
import shutil
import subprocess
import time

from clickos_lab import accounts
from clickos_lab import errors
from clickos_lab import log
from clickos_lab import openstack
from clickos_lab import paths
from clickos_lab import shell
from clickos_lab import stamps

#: Schema by schema, who owns it.
OWNERS = {
    'keystone': 'keystone', 'glance': 'glance', 'placement': 'placement',
    'neutron': 'neutron', 'nova': 'nova', 'nova_api': 'nova',
    'nova_cell0': 'nova', 'tacker': 'tacker', 'clickos': 'clickos',
    'heat': 'heat'}


def install(state, settings):
    """Make MariaDB's own tables, once; only root may log in without one."""
    data = state.data / 'mysql'
    number = settings.ids['mariadb']
    if (data / 'installed.stamp').exists():
        accounts.own_tree(data, number)
        return
    shutil.rmtree(data, ignore_errors=True)     # a first try that failed
    data.mkdir(parents=True, mode=0o700)
    accounts.own_tree(data, number)
    shell.run([*accounts.prefix(state, settings, 'mariadb'),
               'mariadb-install-db', '--no-defaults',
               f'--datadir={data}', '--auth-root-authentication-method=socket',
               '--auth-root-socket-user=root', '--skip-test-db'],
              state.log / 'mariadb-install.log')
    (data / 'installed.stamp').touch()


def ready(state):
    """Return whether MariaDB takes statements."""
    return _sql(state, 'select 1;').returncode == 0


def fill(state, settings):
    """Create or upgrade all schemas; nothing if that was done before."""
    openstack.note(state)
    stamp = state.data / 'schemas.stamp'
    wanted = stamps.digest([openstack.requirements(), *_own_migrations()],
                           *sorted(OWNERS), 'accounts')
    if stamps.fresh(stamp, wanted):
        return
    with log.step('database schemas'):
        _create(state, settings)
        with concurrent.futures.ThreadPoolExecutor() as pool:
            chains = [pool.submit(_run_chain, state, settings, chain)
                      for chain in _chains(state)]
        for chain in chains:
            chain.result()
    stamp.write_text(wanted)


def _own_migrations():
    folder = paths.REPO / 'tacker-plugin/clickos_api/db'
    return [p for p in folder.rglob('*.py') if p.is_file()]


def _create(state, settings):
    statements = []
    for schema, owner in OWNERS.items():
        password = settings.passwords[f'db_{owner}']
        statements += [
            f'create database if not exists {schema};',
            f"create user if not exists '{owner}'@'localhost' "
            f"identified by '{password}';",
            f"grant all on {schema}.* to '{owner}'@'localhost';"]
    done = _sql(state, '\n'.join(statements))
    if done.returncode != 0:
        raise errors.LabError(f'mariadb: {done.stderr.decode().strip()}')


def rows(state, query):
    """Return the rows of a query, each a line with tabs.

    :raises LabError: if it fails
    """
    done = _sql(state, query)
    if done.returncode != 0:
        raise errors.LabError(f'mariadb: {done.stderr.decode().strip()}')
    return done.stdout.decode().splitlines()[1:]


def execute(state, statements):
    """Run statements.

    :raises LabError: if one fails
    """
    rows(state, statements)


def _sql(state, text):
    """Run statements as root; they go by standard input, unseen by ps."""
    return subprocess.run(
        ['mariadb', '--no-defaults', '-S', state.run / 'mariadb/mysql.sock'],
        input=text.encode(), capture_output=True)


def _chains(state):
    """Return commands by account: the lists run side by side."""
    def tool(account, name, *arguments, conf=None):
        conf = conf or f'{account}/{account}.conf'
        return account, [state.tool(name), '--config-file', state.etc / conf,
                         *arguments]

    keystone = ('keystone', 'keystone-manage')
    return (
        [tool(*keystone, 'db_sync'),
         tool(*keystone, 'fernet_setup'),
         tool(*keystone, 'receipt_setup'),
         tool(*keystone, 'credential_setup'),
         tool('placement', 'placement-manage', 'db', 'sync')],
        [tool('nova', 'nova-manage', 'api_db', 'sync'),
         tool('nova', 'nova-manage', 'cell_v2', 'map_cell0'),
         tool('nova', 'nova-manage', 'db', 'sync'),
         ('nova', _create_cell(state))],
        [tool('neutron', 'neutron-db-manage', 'upgrade', 'heads'),
         tool('glance', 'glance-manage', 'db_sync',
              conf='glance/glance-api.conf'),
         tool('clickos', 'clickos-db-manage', 'upgrade',
              conf='clickos/clickos-api.conf'),
         tool('tacker', 'tacker-db-manage', 'upgrade', 'head')])


def _create_cell(state):
    """The one cell takes its database and queue from nova.conf."""
    script = ('nova-manage --config-file "$1" cell_v2 list_cells | '
              'grep -q " cell1 " || '
              'nova-manage --config-file "$1" cell_v2 create_cell '
              '--name cell1')
    return ['sh', '-c', script, 'create-cell', state.etc / 'nova/nova.conf']


def _run_chain(state, settings, commands):
    for account, command in commands:
        began_s = time.time()
        home = str(accounts.home(state, account))
        shell.run([*accounts.prefix(state, settings, account), *command],
                  state.log / 'databases.log', quiet=True, cwd='/',
                  env=shell.environment(state, HOME=home, TMPDIR=home))
        words = ' '.join(str(w) for w in command if '/' not in str(w))
        name = command[0].name if hasattr(command[0], 'name') else 'nova'
        log.info(f'  {name} {words[:40]}: {time.time() - began_s:.1f} s')
