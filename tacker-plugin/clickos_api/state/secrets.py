# SPDX-License-Identifier: Apache-2.0
"""Secrets of projects, encrypted with the keys of the operator.

A value leaves the service in two ways only. The agent of the guest gets it
for a write, and the service that starts the guest gets it for the start.
"""

import json
import threading
import uuid

from clickos_client import secrets
from cryptography import fernet
from oslo_log import log as logging
import sqlalchemy as sa

from clickos_api.db import models
from clickos_api import errors
from clickos_api.state import desired_state
from clickos_api.state import keys

LOG = logging.getLogger(__name__)


class Secrets:
    """All secrets, in the database.

    :param store: desired_state.Store
    :param options: the option group [clickos_api]
    """

    def __init__(self, store, options):
        self._store = store
        self._files = options.secret_key_files
        self._limit = options.max_secrets
        self._keys = None
        self._reading = threading.Lock()

    def create(self, project_id, name, value):
        """Keep a value; return the secret as show() does.

        :raises errors.TooLarge: (code over-quota) if there are too many
        """
        secret_id = str(uuid.uuid4())
        sealed = self._seal(secret_id, project_id, value)
        with self._store.writer() as session:
            count = session.scalar(
                sa.select(sa.func.count()).select_from(models.Secret)
                .where(models.Secret.project_id == project_id))
            if count >= self._limit:
                raise errors.TooLarge(
                    f'project {project_id}: has {count} secrets, the quota is'
                    f' {self._limit}', code='over-quota')
            row = models.Secret(id=secret_id, project_id=project_id,
                                name=name, sealed=sealed,
                                created_at=desired_state.now())
            session.add(row)
            return _to_view(row)

    def list(self, project_id):
        """List a project's secrets, without values."""
        with self._store.reader() as session:
            return [_to_view(row) for row in session.scalars(
                sa.select(models.Secret)
                .where(models.Secret.project_id == project_id)
                .order_by(models.Secret.created_at, models.Secret.id))]

    def show(self, project_id, secret_id):
        """Return 'id', 'name', 'reference' and 'created_at' of a secret.

        :raises errors.NotFound: if the project has none of this id
        """
        with self._store.reader() as session:
            return _to_view(_own(session, project_id, secret_id))

    def delete(self, project_id, secret_id):
        """Forget a secret.

        :raises errors.NotFound: if the project has none of this id
        :raises errors.ApiError: (code in-use) if a state refers to it
        """
        name = secrets.reference(secret_id)
        state = models.DesiredState
        with self._store.writer() as session:
            row = _own(session, project_id, secret_id)
            user = session.scalars(
                sa.select(state.state_key)
                .where(state.project_id == project_id,
                       sa.or_(*(sa.cast(each, sa.Text).contains(name)
                                for each in (state.writes, state.base))))
                .limit(1)).first()
            if user:
                raise errors.ApiError(
                    f'secret {secret_id}: state {keys.name(user)} refers'
                    ' to it; the next start of its guest would fail',
                    code='in-use', status=409)
            session.delete(row)

    def of(self, project_id, writes):
        """Return the secrets.Secrets that writes refer to.

        :param project_id: the guest's; others' secrets do not exist for it
        :raises errors.NotFound: (code no-such-secret) if one is missing
        """
        names = secrets.references(writes)
        if not names:
            return secrets.Secrets()
        table = models.Secret
        with self._store.reader() as session:
            rows = session.scalars(sa.select(table).where(
                table.project_id == project_id,
                table.id.in_([name.partition(':')[2] for name in names])))
            values = {secrets.reference(row.id): self._open(row)
                      for row in rows}
        missing = sorted(names - set(values))
        if missing:
            raise errors.NotFound(f'{missing[0]}: the project has no such'
                                  ' secret', code='no-such-secret')
        return secrets.Secrets(values)

    def rotate(self):
        """Encrypt every value with the first key; return how many."""
        keys = self._fernet()
        with self._store.writer() as session:
            rows = session.scalars(sa.select(models.Secret)).all()
            for row in rows:
                row.sealed = keys.rotate(row.sealed.encode()).decode()
            return len(rows)

    def count(self):
        """Return how many secrets all projects have."""
        with self._store.reader() as session:
            return session.scalar(
                sa.select(sa.func.count()).select_from(models.Secret))

    def closed(self):
        """List the ids of secrets that none of the keys opens.

        :raises errors.Unavailable: (code no-secret-key) without good keys
        """
        keys, found = self._fernet(), []
        with self._store.reader() as session:
            for row in session.scalars(sa.select(models.Secret)):
                try:
                    keys.decrypt(row.sealed.encode())
                except fernet.InvalidToken:
                    found.append(row.id)
        return found

    def _seal(self, secret_id, project_id, value):
        """Encrypt a value with its owner, so that no row can be swapped."""
        text = json.dumps([secret_id, project_id, value])
        return self._fernet().encrypt(text.encode()).decode()

    def _open(self, row):
        try:
            secret_id, project_id, value = json.loads(
                self._fernet().decrypt(row.sealed.encode()))
        except fernet.InvalidToken:
            secret_id = project_id = value = None
        if (secret_id, project_id) != (row.id, row.project_id):
            LOG.error('Secret %s: none of [clickos_api] secret_key_files'
                      ' opens it', row.id)
            raise errors.Unavailable(f'secret {row.id}: cannot be read',
                                     code='no-secret-key')
        return value

    def _fernet(self):
        with self._reading:
            if self._keys is None:
                self._keys = self._read_keys()
            return self._keys

    def _read_keys(self):
        try:
            keys = []
            for path in self._files:
                with open(path, 'rb') as file:
                    keys.append(fernet.Fernet(file.read().strip()))
            return fernet.MultiFernet(keys)
        except (OSError, ValueError) as exc:
            # The message of a wrong key has none of its bytes.
            LOG.error('[clickos_api] secret_key_files: %s', exc)
            raise errors.Unavailable(
                'the service has no key for secrets; an operator has to set'
                ' [clickos_api] secret_key_files', code='no-secret-key')


def _own(session, project_id, secret_id):
    row = session.get(models.Secret, secret_id)
    if row is None or row.project_id != project_id:
        raise errors.NotFound(f'secret {secret_id} could not be found',
                              code='no-such-secret')
    return row


def _to_view(row):
    return {'id': row.id, 'name': row.name,
            'reference': secrets.reference(row.id),
            'created_at': row.created_at.isoformat() + 'Z'}
