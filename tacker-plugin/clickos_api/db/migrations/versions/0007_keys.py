# SPDX-License-Identifier: Apache-2.0
"""Give the states of servers and of projects keys of their own.

A project could make a state under the UUID of a foreign server. The server
then took it for its own. user_data keeps its ids, which name states of the
server's project from now on.
"""

import logging

import sqlalchemy as sa

from alembic import op

revision = '0007'
down_revision = '0006'

LOG = logging.getLogger(__name__)

#: 'state:', a project's id of at most 64 characters, ':' and a UUID.
_KEY = sa.String(107)
_ID = 36
_TABLES = ('desired_state', 'changes', 'fused_hops')


def upgrade():
    """Make keys of ids; delete what projects made for foreign servers."""
    states = _table('desired_state', 'state_id', 'project_id', 'server_id',
                    'is_referred')
    _delete_squatters(states)
    for name in _TABLES:
        with op.batch_alter_table(name) as table:
            table.alter_column('state_id', new_column_name='state_key',
                               existing_type=sa.String(_ID), type_=_KEY,
                               existing_nullable=False)
    hops, changes = (_table(name, 'state_key', 'project_id')
                     for name in ('fused_hops', 'changes'))
    states = _table('desired_state', 'state_key', 'project_id', 'is_referred')
    referred = sa.select(states.c.state_key).where(
        states.c.is_referred == sa.true())
    owner = sa.select(states.c.project_id).where(
        states.c.state_key == changes.c.state_key).scalar_subquery()
    # MySQL reads no table that a statement changes: this one comes last.
    _rename(changes, changes.c.state_key.in_(referred), owner)
    _rename(hops, hops.c.state_key.in_(referred), hops.c.project_id)
    _rename(states, states.c.is_referred == sa.true(), states.c.project_id)
    with op.batch_alter_table('desired_state') as table:
        table.drop_column('is_referred')


def _delete_squatters(states):
    """Delete states under the UUID of the server that has them.

    Such a state has the configuration of one project and the writes of
    another. The server starts with its user_data, and its project writes
    the values again.
    """
    bind = op.get_bind()
    found = bind.execute(sa.select(states.c.state_id, states.c.project_id)
                         .where(states.c.is_referred == sa.true(),
                                states.c.server_id == states.c.state_id))
    for state_id, project_id in found.all():
        LOG.warning('Server %s: its state, which project %s made, is deleted;'
                    ' write the values again', state_id, project_id)
        for name in ('desired_state', 'changes'):
            table = _table(name, 'state_id')
            bind.execute(sa.delete(table).where(
                table.c.state_id == state_id))


def _rename(table, is_reference, project_id):
    key = table.c.state_key
    for condition, prefix in (
            (is_reference, sa.literal('state:') + project_id + ':'),
            (key.notlike('state:%'), sa.literal('server:'))):
        op.execute(sa.update(table).where(condition).values(
            state_key=prefix + key))


def _table(name, *columns):
    return sa.table(name, *(
        sa.column(column, sa.Boolean if column == 'is_referred'
                  else sa.String(_ID)) for column in columns))


def downgrade():
    """Go back; it fails if two projects have a state of one id."""
    with op.batch_alter_table('desired_state') as table:
        table.add_column(sa.Column('is_referred', sa.Boolean, nullable=False,
                                   server_default=sa.false()))
    states = _table('desired_state', 'state_key', 'is_referred')
    op.execute(sa.update(states)
               .where(states.c.state_key.like('state:%'))
               .values(is_referred=sa.true()))
    for name in _TABLES:
        table = _table(name, 'state_key')
        key = table.c.state_key
        op.execute(sa.update(table).values(state_key=sa.func.substr(
            key, sa.func.length(key) - _ID + 1)))
        with op.batch_alter_table(name) as table:
            table.alter_column('state_key', new_column_name='state_id',
                               existing_type=_KEY, type_=sa.String(_ID),
                               existing_nullable=False)
