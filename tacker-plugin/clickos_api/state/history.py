# SPDX-License-Identifier: Apache-2.0
"""Looks at desired states: changes, earlier revisions, old servers."""

import datetime

import sqlalchemy as sa

from clickos_api.db import models
from clickos_api import errors
from clickos_api.state import desired_state
from clickos_api.state import keys
from clickos_api.state import states


def change(store, key, number):
    """Return a change as clients see it.

    :raises errors.NotFound: if there is none of this number any more
    """
    with store.reader() as session:
        row = session.get(models.Change, (key, number))
        if row is None:
            raise errors.NotFound(
                f'change {number}: could not be found; the newest are kept',
                code='no-such-change')
        return _to_view(row)


def changes(store, key):
    """List the changes that are kept, the newest first."""
    with store.reader() as session:
        rows = session.scalars(
            sa.select(models.Change)
            .where(models.Change.state_key == key)
            .order_by(models.Change.number.desc())).all()
        return [_to_view(row) for row in rows]


def _to_view(row):
    shown = {'number': row.number, 'status': row.status,
             'created_at': row.created_at.isoformat() + 'Z'}
    if row.revision is not None:
        shown['revision'] = row.revision
    if row.error:
        shown['error'] = row.error
    return shown


def at(store, key, revision):
    """Return the states.State that an earlier revision was.

    :raises errors.NotFound: if the revision is not kept
    """
    with store.reader() as session:
        row = session.get(models.DesiredState, key)
        if row is None or not 0 <= revision <= row.revision:
            raise _no_revision(revision)
        configuration, writes = row.configuration, row.writes
        newer = session.scalars(
            sa.select(models.Change)
            .where(models.Change.state_key == key,
                   models.Change.revision > revision,
                   models.Change.replaced.is_not(None))
            .order_by(models.Change.revision.desc())).all()
        if len(newer) != row.revision - revision:
            raise _no_revision(revision)
        for each in newer:
            configuration, writes = states.undo(configuration, writes,
                                                each.replaced)
        return states.State(revision, writes, configuration)


def _no_revision(revision):
    return errors.NotFound(
        f'revision {revision}: is not kept; the newest ones are',
        code='no-such-revision')


def unsettled(store, older_s, after='', limit=500):
    """List old changes without a verdict as (state key, server id, host,
    newest number), by key.

    :param after: key of the last one that was listed
    """
    before = desired_state.now() - datetime.timedelta(seconds=older_s)
    state, row = models.DesiredState, models.Change
    with store.reader() as session:
        return session.execute(
            sa.select(row.state_key, state.server_id, sa.func.max(row.host),
                      sa.func.max(row.number))
            .join(state, state.state_key == row.state_key)
            .where(row.status == states.PENDING, row.created_at < before,
                   row.state_key > after)
            .group_by(row.state_key, state.server_id)
            .order_by(row.state_key).limit(limit)).all()


def counts(store):
    """Return {status: changes} and the number and bytes of states."""
    with store.reader() as session:
        by_status = session.execute(
            sa.select(models.Change.status, sa.func.count())
            .group_by(models.Change.status)).all()
        number, size = session.execute(sa.select(
            sa.func.count(),
            sa.func.coalesce(sa.func.sum(models.DesiredState.size), 0))
            .select_from(models.DesiredState)).one()
        return dict(map(tuple, by_status)), number, int(size)


def servers(store, after, limit=200):
    """List (state key, server id, gone since), by key.

    :param after: key of the last one that was listed
    """
    state = models.DesiredState
    with store.reader() as session:
        return session.execute(
            sa.select(state.state_key, state.server_id, state.gone_at)
            .where(state.state_key > after, state.server_id.is_not(None))
            .order_by(state.state_key).limit(limit)).all()


def unused(store, older_s, limit=500):
    """List keys of old states that no server has started with."""
    before = desired_state.now() - datetime.timedelta(seconds=older_s)
    state = models.DesiredState
    with store.reader() as session:
        return session.scalars(
            sa.select(state.state_key)
            .where(state.server_id.is_(None),
                   state.state_key.startswith(keys.REFERENCES),
                   state.updated_at < before).limit(limit)).all()


def set_gone(store, key, is_gone):
    """Note whether Nova still has the server of a state."""
    with store.writer() as session:
        session.execute(
            sa.update(models.DesiredState)
            .where(models.DesiredState.state_key == key)
            .values(gone_at=desired_state.now() if is_gone else None))
