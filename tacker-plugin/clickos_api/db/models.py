# SPDX-License-Identifier: Apache-2.0
"""The tables."""

import sqlalchemy as sa
from sqlalchemy import orm


class Base(orm.DeclarativeBase):
    """Base of the tables."""


class DesiredState(Base):
    """Handler values to write again when a server's guest starts again.

    Each server has one row. Attempts to write are numbered in it, and
    writers of different servers never wait for each other.
    """

    __tablename__ = 'desired_state'
    __table_args__ = {'mysql_engine': 'InnoDB', 'mysql_charset': 'utf8mb4'}

    server_id = sa.Column(sa.String(36), primary_key=True)
    revision = sa.Column(sa.BigInteger, nullable=False)
    #: [[handler, value], ...], one entry a handler, the last written last
    writes = sa.Column(sa.JSON, nullable=False)
    #: number of the newest attempt to write
    attempt = sa.Column(sa.BigInteger, nullable=False)
    #: [[attempt, writes], ...]: attempts without a verdict, oldest first
    pending = sa.Column(sa.JSON, nullable=False)
    #: until then other writers wait for the newest attempt's end
    busy_until = sa.Column(sa.DateTime)
    updated_at = sa.Column(sa.DateTime, nullable=False)
