# SPDX-License-Identifier: Apache-2.0
"""Call changes lost that were called dropped."""

import sqlalchemy as sa

from alembic import op

revision = '0008'
down_revision = '0007'


def upgrade():
    """Give the rows the word of clickos_client.outcomes."""
    _rename('dropped', 'lost')


def downgrade():
    """Undo it."""
    _rename('lost', 'dropped')
    _rename('unknown', 'dropped')


def _rename(before, after):
    changes = sa.table('changes', sa.column('status', sa.String(16)))
    op.execute(changes.update().where(changes.c.status == before)
               .values(status=after))
