# SPDX-License-Identifier: Apache-2.0
"""Add the table of secrets."""

import sqlalchemy as sa

from alembic import op

revision = '0005'
down_revision = '0004'


def upgrade():
    """Create the table."""
    op.create_table(
        'secrets',
        sa.Column('id', sa.String(36), primary_key=True),
        sa.Column('project_id', sa.String(64), nullable=False, index=True),
        sa.Column('name', sa.String(64), nullable=False),
        sa.Column('sealed', sa.Text, nullable=False),
        sa.Column('created_at', sa.DateTime, nullable=False),
        mysql_engine='InnoDB', mysql_charset='utf8mb4')


def downgrade():
    """Drop the table; all secrets are lost."""
    op.drop_table('secrets')
