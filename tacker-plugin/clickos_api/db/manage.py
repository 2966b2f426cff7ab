# SPDX-License-Identifier: Apache-2.0
"""clickos-db-manage: the layout of the database, and keys of secrets."""

import sys

from alembic import command as alembic_command
from alembic import config as alembic_config
from oslo_config import cfg
from oslo_db.sqlalchemy import enginefacade

from clickos_api import conf as api_conf
from clickos_api.db import schema
from clickos_api import errors
from clickos_api.state import desired_state
from clickos_api.state import secrets


def alembic_for(connection):
    """Return alembic's configuration for an open connection."""
    config = alembic_config.Config()
    config.set_main_option('script_location', 'clickos_api.db:migrations')
    config.attributes['connection'] = connection
    return config


def upgrade(conf, revision, only_expand=False):
    """Run the migrations up to revision.

    :param only_expand: stop before the first one that the release before
        could not work with
    """
    facade = enginefacade.transaction_context()
    facade.configure(**conf.database)
    with facade.writer.get_engine().begin() as connection:
        if only_expand:
            revision = schema.last_expansion(schema.scripts(),
                                             schema.current(connection))
        alembic_command.upgrade(alembic_for(connection), revision)


def _add_commands(subparsers):
    parser = subparsers.add_parser(
        'upgrade', help='create the tables or bring them up to date')
    parser.add_argument('revision', nargs='?', default='head')
    parser.add_argument(
        '--expand', action='store_true', help='only the migrations that a'
        ' running service of the release before tolerates')
    subparsers.add_parser(
        'rotate-secrets', help='encrypt all secrets with the first file of'
        ' [clickos_api] secret_key_files')


def main(argv=None):
    """Entry point of the console script."""
    conf = api_conf.register(cfg.ConfigOpts())
    conf.register_cli_opt(cfg.SubCommandOpt(
        'command', title='Commands', handler=_add_commands))
    api_conf.parse(conf, sys.argv[1:] if argv is None else argv,
                   api_conf.files_from_environment())
    if conf.command.name is None:
        conf.print_help()
        return 2
    if conf.command.name == 'upgrade':
        upgrade(conf, conf.command.revision, conf.command.expand)
    else:
        return _rotate(conf)
    return 0


def _rotate(conf):
    try:
        count = secrets.Secrets(desired_state.Store(conf),
                                conf.clickos_api).rotate()
    except errors.ApiError as exc:
        print(exc.message, file=sys.stderr)
        return 1
    print(f'{count} secrets are encrypted with the first key')
    return 0
