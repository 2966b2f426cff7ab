# SPDX-License-Identifier: Apache-2.0
"""Keep a configuration that replaced a server's first one."""

import sqlalchemy as sa

from alembic import op

revision = '0003'
down_revision = '0002'


def upgrade():
    """Add the column."""
    with op.batch_alter_table('desired_state') as table:
        table.add_column(sa.Column('configuration', sa.JSON, nullable=True))


def downgrade():
    """Drop the column."""
    with op.batch_alter_table('desired_state') as table:
        table.drop_column('configuration')
