# SPDX-License-Identifier: Apache-2.0
"""Number the attempts to write (docs/adr/0071)."""

import sqlalchemy as sa

from alembic import op

revision = '0002'
down_revision = '0001'


def upgrade():
    """Add the columns; MariaDB gives a JSON column no default by itself."""
    with op.batch_alter_table('desired_state') as table:
        table.add_column(sa.Column('attempt', sa.BigInteger, nullable=False,
                                   server_default='0'))
        table.add_column(sa.Column('pending', sa.JSON, nullable=True))
        table.add_column(sa.Column('busy_until', sa.DateTime, nullable=True))
    op.execute("UPDATE desired_state SET pending = '[]'")
    with op.batch_alter_table('desired_state') as table:
        table.alter_column('pending', existing_type=sa.JSON, nullable=False)


def downgrade():
    """Drop the columns."""
    with op.batch_alter_table('desired_state') as table:
        for name in ('attempt', 'pending', 'busy_until'):
            table.drop_column(name)
