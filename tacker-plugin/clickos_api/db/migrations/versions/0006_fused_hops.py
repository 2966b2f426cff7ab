# SPDX-License-Identifier: Apache-2.0
"""Add the table of hops of fused chains."""

import sqlalchemy as sa

from alembic import op

revision = '0006'
down_revision = '0005'


def upgrade():
    """Create the table."""
    op.create_table(
        'fused_hops',
        sa.Column('state_id', sa.String(36), primary_key=True),
        sa.Column('chain_id', sa.String(36), nullable=False, index=True),
        sa.Column('place', sa.Integer, nullable=False),
        sa.Column('name', sa.String(32), nullable=False),
        sa.Column('group_id', sa.String(36), nullable=False),
        sa.Column('server_id', sa.String(36), nullable=False, index=True),
        sa.Column('project_id', sa.String(64), nullable=False),
        mysql_engine='InnoDB', mysql_charset='utf8mb4')


def downgrade():
    """Drop the table; unfuse all chains before."""
    op.drop_table('fused_hops')
