# SPDX-License-Identifier: Apache-2.0
"""Lets tacker-conductor wait for its database instead of failing at once."""

from oslo_config import cfg
from oslo_log import log as logging
import sqlalchemy as sa
import tenacity

LOG = logging.getLogger(__name__)

#: Numbers of MySQL's errors that a server gives, or is the cause of, while it
#: starts, stops or is not there: 1040 has too many connections, 1053 and 1927
#: stop, 2002 to 2013 say that nothing answers.
_AWAY = (1040, 1053, 1927, 2002, 2003, 2006, 2013)
_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.1, 2


def wait_for_it():
    """Let each new connection of this process wait; may be called twice.

    SQLAlchemy tests a pooled connection before each use (oslo.db), and makes
    a new one for one that broke.
    """
    if not sa.event.contains(sa.engine.Engine, 'do_connect', _connect):
        sa.event.listen(sa.engine.Engine, 'do_connect', _connect)


def _connect(dialect, _record, arguments, options):
    """Return a connection of the driver."""
    return tenacity.Retrying(
        retry=tenacity.retry_if_exception(_is_away),
        stop=tenacity.stop_after_delay(cfg.CONF.clickos.outage_timeout),
        wait=tenacity.wait_exponential(_FIRST_PAUSE_S, _LONGEST_PAUSE_S),
        before_sleep=_note, reraise=True)(
            dialect.connect, *arguments, **options)


def _is_away(error):
    return bool(getattr(error, 'args', ())) and error.args[0] in _AWAY


def _note(attempt):
    if attempt.attempt_number == 1:
        LOG.warning('The database cannot be reached; waiting for it: %s',
                    attempt.outcome.exception())
