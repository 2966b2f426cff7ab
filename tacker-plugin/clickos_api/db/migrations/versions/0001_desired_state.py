# SPDX-License-Identifier: Apache-2.0
"""Create table desired_state."""

import sqlalchemy as sa

from alembic import op

revision = '0001'
down_revision = None


def upgrade():
    """Create the table."""
    op.create_table(
        'desired_state',
        sa.Column('server_id', sa.String(36), primary_key=True),
        sa.Column('revision', sa.BigInteger, nullable=False),
        sa.Column('writes', sa.JSON, nullable=False),
        sa.Column('updated_at', sa.DateTime, nullable=False),
        mysql_engine='InnoDB', mysql_charset='utf8mb4')
