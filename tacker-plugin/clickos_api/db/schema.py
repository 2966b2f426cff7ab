# SPDX-License-Identifier: Apache-2.0
"""Which tables this release needs, and which ones the database has.

A migration expands the tables or contracts them. An expansion adds what the
release before does not need, so that both releases can work at the same
time. A contraction removes what the release before needs; it writes its
revision into the table contractions, which each release reads at its start.
"""

import threading

from alembic import config as alembic_config
from alembic import migration
from alembic import script
import sqlalchemy as sa

from clickos_api import errors

#: The first revision whose tables this release can work with.
OLDEST = '0011'
EXPAND, CONTRACT = 'expand', 'contract'
#: Of migration 0009; it names no object of a tenant.
_CONTRACTIONS = sa.table('contractions', sa.column('revision'))


def scripts():
    """Return the migrations that this release knows."""
    config = alembic_config.Config()
    config.set_main_option('script_location', 'clickos_api.db:migrations')
    return script.ScriptDirectory.from_config(config)


def last_expansion(known, current):
    """Return the newest revision before the next contraction.

    :param known: scripts()
    :param current: revision of the database, None for an empty one
    """
    if current is None:
        return 'head'   # no release uses the tables
    found = current
    for each in reversed(list(known.iterate_revisions('head', current))):
        if getattr(each.module, 'phase', CONTRACT) == CONTRACT:
            break
        found = each.revision
    return found


def current(connection):
    """Return the revision of a database, None for an empty one."""
    return migration.MigrationContext.configure(
        connection).get_current_revision()


def fault(session):
    """Return why this release cannot use the tables, or None."""
    found, known = current(session.connection()), scripts()
    revisions = {each.revision for each in known.walk_revisions()}
    if found in revisions:
        newer = {each.revision for each in known.iterate_revisions(
            found, OLDEST, inclusive=True)} if found >= OLDEST else set()
        if found not in newer:
            return (f'the tables have revision {found}, this release needs'
                    f' {OLDEST}; run clickos-db-manage upgrade --expand')
    elif found is None:
        return 'there are no tables; run clickos-db-manage upgrade'
    unknown = sorted(set(session.scalars(
        sa.select(_CONTRACTIONS.c.revision))) - revisions)
    if unknown:
        return (f'contraction {unknown[0]} of a later release removed what'
                ' this release needs; upgrade the service')
    return None


class Guard:
    """Refuses requests while the tables are not those of this release.

    :param store: desired_state.Store
    """

    def __init__(self, store):
        self._store = store
        self._is_good = False
        self._looking = threading.Lock()

    def require(self):
        """Look at the tables until they are good once.

        :raises errors.Unavailable: (code schema) if they are not
        """
        if self._is_good:
            return
        with self._looking:
            if self._is_good:
                return
            with self._store.reader() as session:
                why = fault(session)
            if why:
                raise errors.Unavailable(f'database: {why}', code='schema')
            self._is_good = True
