# SPDX-License-Identifier: Apache-2.0
"""The tables."""

import sqlalchemy as sa
from sqlalchemy import orm

from clickos_api.state import keys

_INNODB = {'mysql_engine': 'InnoDB', 'mysql_charset': 'utf8mb4'}


class Base(orm.DeclarativeBase):
    """Base of the tables."""


class DesiredState(Base):
    """The configuration and writes of a guest (docs/adr/0072).

    The key is one of clickos_api.state.keys. It names a state to which
    user_data of a project refers, or a server without such a reference.
    """

    __tablename__ = 'desired_state'
    __table_args__ = _INNODB

    state_key = sa.Column(sa.String(keys.LENGTH), primary_key=True)
    #: the owner; None for states that were made before version 0004
    project_id = sa.Column(sa.String(64), index=True)
    #: the server that has the state, or had it last
    server_id = sa.Column(sa.String(36))
    revision = sa.Column(sa.BigInteger, nullable=False)
    #: [[handler, value], ...], one entry a handler, the last written last
    writes = sa.Column(sa.JSON, nullable=False)
    #: {'config', 'config_name'} that replaced the first one; None if none did
    configuration = sa.Column(sa.JSON(none_as_null=True))
    #: {'configuration', 'writes'} of a state that user_data refers to
    base = sa.Column(sa.JSON(none_as_null=True))
    #: bytes of writes and configuration, for the quota
    size = sa.Column(sa.BigInteger, nullable=False)
    #: bytes of base, and of all its changes; None if none were counted yet
    base_size = sa.Column(sa.BigInteger)
    changes_size = sa.Column(sa.BigInteger)
    #: number of the newest change
    number = sa.Column(sa.BigInteger, nullable=False)
    #: of the guest's newest start, if known
    incarnation = sa.Column(sa.String(36))
    #: until then other writers wait for the newest change's verdict
    busy_until = sa.Column(sa.DateTime)
    updated_at = sa.Column(sa.DateTime, nullable=False)
    #: when Nova said that the server is gone
    gone_at = sa.Column(sa.DateTime)


class Change(Base):
    """A numbered change of a state, with or without a verdict."""

    __tablename__ = 'changes'
    __table_args__ = _INNODB

    state_key = sa.Column(sa.String(keys.LENGTH), primary_key=True)
    number = sa.Column(sa.BigInteger, primary_key=True, autoincrement=False)
    #: pending, applied, or a word of clickos_client.outcomes
    status = sa.Column(sa.String(16), nullable=False)
    #: a list as writes, or an object as configuration; None once settled
    body = sa.Column(sa.JSON(none_as_null=True))
    #: what the change replaced, to restore an earlier revision
    replaced = sa.Column(sa.JSON(none_as_null=True))
    #: bytes of body or replaced; None if they were not counted yet
    size = sa.Column(sa.BigInteger)
    #: of the state after the change; None if it was not applied
    revision = sa.Column(sa.BigInteger)
    #: {'code', 'message'} of the guest
    error = sa.Column(sa.JSON(none_as_null=True))
    #: Nova's name of the host that has the change
    host = sa.Column(sa.String(255))
    created_at = sa.Column(sa.DateTime, nullable=False)


class Secret(Base):
    """A value that only guests get (docs/adr/0067)."""

    __tablename__ = 'secrets'
    __table_args__ = _INNODB

    id = sa.Column(sa.String(36), primary_key=True)
    project_id = sa.Column(sa.String(64), nullable=False, index=True)
    name = sa.Column(sa.String(64), nullable=False)
    #: the encrypted [id, project_id, value]
    sealed = sa.Column(sa.Text, nullable=False)
    created_at = sa.Column(sa.DateTime, nullable=False)


class FusedHop(Base):
    """A hop whose packets another guest handles (docs/adr/0081)."""

    __tablename__ = 'fused_hops'
    __table_args__ = _INNODB

    #: of the hop's own guest
    state_key = sa.Column(sa.String(keys.LENGTH), primary_key=True)
    chain_id = sa.Column(sa.String(36), nullable=False, index=True)
    #: in the chain, from 0
    place = sa.Column(sa.Integer, nullable=False)
    #: elements of the fused guest begin with it and a slash
    name = sa.Column(sa.String(32), nullable=False)
    #: the hop's port pair group
    group_id = sa.Column(sa.String(36), nullable=False)
    #: of the fused guest
    server_id = sa.Column(sa.String(36), nullable=False, index=True)
    project_id = sa.Column(sa.String(64), nullable=False)


class SharedLimits(Base):
    """Limits that guests share (docs/adr/0117); times are of the clock."""

    __tablename__ = 'shared_limits'
    __table_args__ = _INNODB

    project_id = sa.Column(sa.String(64), primary_key=True)
    #: the caller's choice, such as the id of a VNF
    id = sa.Column(sa.String(36), primary_key=True)
    #: sharing.Ledger as JSON text
    ledger = sa.Column(sa.Text(length=2 ** 20), nullable=False)
    #: of the newest round; a round stores nothing under another one
    version = sa.Column(sa.BigInteger, nullable=False)
    #: until then no other round begins
    busy_until_ms = sa.Column(sa.BigInteger, nullable=False)
    #: when the newest round looked at the guests, and when there were some
    looked_ms = sa.Column(sa.BigInteger, nullable=False, index=True)
    used_ms = sa.Column(sa.BigInteger, nullable=False)


class Contraction(Base):
    """A migration that removed what releases before it need.

    A service that does not know the revision must not use the tables.
    """

    __tablename__ = 'contractions'
    __table_args__ = _INNODB

    revision = sa.Column(sa.String(32), primary_key=True)
