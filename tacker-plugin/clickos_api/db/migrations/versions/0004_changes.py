# SPDX-License-Identifier: Apache-2.0
"""Give changes a table, and states an id, an owner and a size."""

import json

import sqlalchemy as sa

from alembic import op

revision = '0004'
down_revision = '0003'


def _columns():
    return (
        sa.Column('state_id', sa.String(36), primary_key=True),
        sa.Column('number', sa.BigInteger, primary_key=True,
                  autoincrement=False),
        sa.Column('status', sa.String(16), nullable=False),
        sa.Column('body', sa.JSON, nullable=True),
        sa.Column('replaced', sa.JSON, nullable=True),
        sa.Column('revision', sa.BigInteger, nullable=True),
        sa.Column('error', sa.JSON, nullable=True),
        sa.Column('host', sa.String(255), nullable=True),
        sa.Column('created_at', sa.DateTime, nullable=False))


def upgrade():
    """Move the pending attempts into their table."""
    op.create_table('changes', *_columns(),
                    mysql_engine='InnoDB', mysql_charset='utf8mb4')
    _move_pending()
    with op.batch_alter_table('desired_state') as table:
        table.alter_column('server_id', new_column_name='state_id',
                           existing_type=sa.String(36),
                           existing_nullable=False)
        table.alter_column('attempt', new_column_name='number',
                           existing_type=sa.BigInteger,
                           existing_nullable=False)
        table.drop_column('pending')
        table.add_column(sa.Column('project_id', sa.String(64)))
        table.add_column(sa.Column('is_referred', sa.Boolean, nullable=False,
                                   server_default=sa.false()))
        table.add_column(sa.Column('size', sa.BigInteger, nullable=False,
                                   server_default='0'))
        table.add_column(sa.Column('incarnation', sa.String(36)))
        table.add_column(sa.Column('base', sa.JSON, nullable=True))
        table.add_column(sa.Column('gone_at', sa.DateTime))
    with op.batch_alter_table('desired_state') as table:
        table.add_column(sa.Column('server_id', sa.String(36)))
        table.create_index('ix_desired_state_project_id', ['project_id'])
    op.execute('UPDATE desired_state SET server_id = state_id')


def _move_pending():
    bind = op.get_bind()
    rows = bind.execute(sa.text(
        'SELECT server_id, pending, updated_at FROM desired_state'))
    table = sa.table('changes', *(sa.column(column.name, column.type)
                                  for column in _columns()))
    for server_id, pending, _updated in rows.all():
        for number, body in json.loads(pending or '[]'):
            bind.execute(sa.insert(table).values(
                state_id=server_id, number=number, status='pending',
                body=body, created_at=sa.func.now()))


def downgrade():
    """Go back; changes without a verdict are forgotten."""
    op.drop_table('changes')
    with op.batch_alter_table('desired_state') as table:
        table.drop_index('ix_desired_state_project_id')
        for name in ('project_id', 'server_id', 'is_referred', 'size',
                     'incarnation', 'base', 'gone_at'):
            table.drop_column(name)
    with op.batch_alter_table('desired_state') as table:
        table.alter_column('state_id', new_column_name='server_id',
                           existing_type=sa.String(36),
                           existing_nullable=False)
        table.alter_column('number', new_column_name='attempt',
                           existing_type=sa.BigInteger,
                           existing_nullable=False)
        table.add_column(sa.Column('pending', sa.JSON, nullable=True))
    op.execute("UPDATE desired_state SET pending = '[]'")
    with op.batch_alter_table('desired_state') as table:
        table.alter_column('pending', existing_type=sa.JSON, nullable=False)
