# SPDX-License-Identifier: Apache-2.0
"""How alembic runs the migrations: on the connection manage.py opened."""

from alembic import context

from clickos_api.db import models

context.configure(connection=context.config.attributes['connection'],
                  target_metadata=models.Base.metadata)
with context.begin_transaction():
    context.run_migrations()
