# SPDX-License-Identifier: Apache-2.0
"""Which guest handles the packets of a fused chain's hops (docs/adr/0081)."""

import dataclasses

from oslo_db import exception as db_exc
import sqlalchemy as sa

from clickos_api.db import models
from clickos_api import errors

_ROW = models.FusedHop


@dataclasses.dataclass(frozen=True)
class Hop:
    """A hop of a fused chain.

    :param state_key: of the hop's own guest
    :param name: of the hop in the fused guest
    :param group_id: its port pair group
    """

    state_key: str
    name: str
    group_id: str

    @property
    def prefix(self):
        """The beginning of the names of its elements."""
        return f'{self.name}/'

    def in_fused(self, handler):
        """Return a handler's name in the fused guest.

        A handler of the guest as a whole is None there.
        """
        return self.prefix + handler if '.' in handler else None


@dataclasses.dataclass(frozen=True)
class Fusion:
    """A fused chain.

    :param server_id: of the fused guest
    :param hops: of the chain, in order
    """

    chain_id: str
    server_id: str
    project_id: str
    hops: tuple

    def hop(self, state_key):
        """Return the hop of a state."""
        return next(hop for hop in self.hops if hop.state_key == state_key)


class Fusions:
    """All fused chains, in the database.

    :param store: desired_state.Store
    """

    def __init__(self, store):
        self._store = store

    def of_chain(self, chain_id):
        """Return the Fusion of a chain, or None."""
        return self._find(_ROW.chain_id == chain_id)

    def of_state(self, state_key):
        """Return the Fusion that a hop's state is in, or None."""
        return self._find(_ROW.chain_id.in_(
            sa.select(_ROW.chain_id).where(_ROW.state_key == state_key)))

    def of_fused(self, server_id):
        """Return the Fusion whose hops a server runs, or None."""
        return self._find(_ROW.server_id == server_id)

    def _find(self, condition):
        with self._store.reader() as session:
            rows = session.scalars(sa.select(_ROW).where(condition)
                                   .order_by(_ROW.place)).all()
            if not rows:
                return None
            return Fusion(
                rows[0].chain_id, rows[0].server_id, rows[0].project_id,
                tuple(Hop(row.state_key, row.name, row.group_id)
                      for row in rows))

    def add(self, fusion):
        """Note that a chain is fused.

        :raises errors.ApiError: (code fused) if it or a hop is already
        """
        fused = errors.ApiError(f'chain {fusion.chain_id}: it or one of its'
                                ' hops is fused already', code='fused',
                                status=409)
        if self.of_chain(fusion.chain_id):
            raise fused
        with self._store.writer() as session:
            session.add_all(_ROW(
                state_key=hop.state_key, chain_id=fusion.chain_id, place=place,
                name=hop.name, group_id=hop.group_id,
                server_id=fusion.server_id, project_id=fusion.project_id)
                for place, hop in enumerate(fusion.hops))
            try:
                session.flush()
            except db_exc.DBDuplicateEntry:
                raise fused

    def remove(self, chain_id):
        """Forget that a chain is fused; may be called twice."""
        with self._store.writer() as session:
            session.execute(sa.delete(_ROW).where(_ROW.chain_id == chain_id))
