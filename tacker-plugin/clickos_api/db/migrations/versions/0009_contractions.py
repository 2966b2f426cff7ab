# SPDX-License-Identifier: Apache-2.0
"""Note which contractions the tables have had."""

import sqlalchemy as sa

from alembic import op

revision = '0009'
down_revision = '0008'
phase = 'expand'


def upgrade():
    """Make the table."""
    op.create_table(
        'contractions',
        sa.Column('revision', sa.String(32), primary_key=True),
        mysql_engine='InnoDB', mysql_charset='utf8mb4')


def downgrade():
    """Undo it."""
    op.drop_table('contractions')
