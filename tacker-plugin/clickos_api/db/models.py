# SPDX-License-Identifier: Apache-2.0
"""The tables."""

import sqlalchemy as sa
from sqlalchemy import orm


class Base(orm.DeclarativeBase):
    """Base of the tables."""


class DesiredState(Base):
    """Changes of a server to repeat when its guest starts again.

    Each server has one row. Attempts to write are numbered in it, and
    writers of different servers never wait for each other.
    """

    __tablename__ = 'desired_state'
    __table_args__ = {'mysql_engine': 'InnoDB', 'mysql_charset': 'utf8mb4'}

    server_id = sa.Column(sa.String(36), primary_key=True)
    revision = sa.Column(sa.BigInteger, nullable=False)
    #: [[handler, value], ...], one entry a handler, the last written last
    writes = sa.Column(sa.JSON, nullable=False)
    #: {'config', 'config_name'} that replaced the first one; None if none did
    configuration = sa.Column(sa.JSON(none_as_null=True))
    #: number of the newest attempt to write
    attempt = sa.Column(sa.BigInteger, nullable=False)
    #: [[attempt, change], ...]: attempts without a verdict, oldest first; a
    #: change is a list as writes, or an object as configuration
    pending = sa.Column(sa.JSON, nullable=False)
    #: until then other writers wait for the newest attempt's end
    busy_until = sa.Column(sa.DateTime)
    updated_at = sa.Column(sa.DateTime, nullable=False)
