# SPDX-License-Identifier: Apache-2.0
"""Note how many bytes changes have, and the texts that states began with."""

import sqlalchemy as sa

from alembic import op

revision = '0011'
down_revision = '0010'
phase = 'expand'

_OF_STATE = ('base_size', 'changes_size')


def upgrade():
    """Add the columns; rows of before are counted when they change."""
    op.add_column('changes', sa.Column('size', sa.BigInteger))
    for name in _OF_STATE:
        op.add_column('desired_state', sa.Column(name, sa.BigInteger))


def downgrade():
    """Undo it."""
    with op.batch_alter_table('desired_state') as table:
        for name in _OF_STATE:
            table.drop_column(name)
    with op.batch_alter_table('changes') as table:
        table.drop_column('size')
