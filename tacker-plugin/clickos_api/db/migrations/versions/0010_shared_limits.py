# SPDX-License-Identifier: Apache-2.0
"""Add the table of limits that guests share."""

import sqlalchemy as sa

from alembic import op

revision = '0010'
down_revision = '0009'
phase = 'expand'


def upgrade():
    """Make the table."""
    op.create_table(
        'shared_limits',
        sa.Column('project_id', sa.String(64), primary_key=True),
        sa.Column('id', sa.String(36), primary_key=True),
        sa.Column('ledger', sa.Text(length=2 ** 20), nullable=False),
        sa.Column('version', sa.BigInteger, nullable=False),
        sa.Column('busy_until_ms', sa.BigInteger, nullable=False),
        sa.Column('looked_ms', sa.BigInteger, nullable=False, index=True),
        sa.Column('used_ms', sa.BigInteger, nullable=False),
        mysql_engine='InnoDB', mysql_charset='utf8mb4')


def downgrade():
    """Undo it."""
    op.drop_table('shared_limits')
