# SPDX-License-Identifier: Apache-2.0
"""Hands the work of a pair's guest to the other one before it begins again.

A guest that just ends is missed for three advertisements, and the other one
may not have its flows yet, if it began only now itself.
"""

import time

from oslo_log import log as logging

from tacker_clickos import exception
from tacker_clickos import outages

LOG = logging.getLogger(__name__)

_STATE, _COPIES, _RESIGN = 'vrrp.state', 'vrrp.copies', 'vrrp.resign'
_ACTIVE = 'active'
#: What VRRP says when it has sent all flows to the other guest, the numbers of
#: both ends of their connection, and what it says in a function without flows.
_COPIED, _CONNECTION = {'connected true', 'waiting 0'}, 'connection '
_NO_FLOWS = 'off'
#: The other guest gets the flows of a full table in seconds. Whatever the
#: guests say, their pair continues after this time and one request.
_PATIENCE_S = 30
_PAUSE_S = 0.1


def hand_over(api, server_id, other_id):
    """Let the other guest of a pair forward, as soon as it has all flows.

    A guest that does not answer hands nothing over, and its end does. So no
    request is repeated: one that hangs has to begin again soon.

    :param api: clickos_api.Client
    """
    try:
        with outages.ignored():
            _hand_over(api, server_id, other_id)
    except (exception.ApiUnavailable, exception.HandlerRefused,
            exception.ServiceAway) as error:
        LOG.info('server %s hands nothing over to server %s: %s', server_id,
                 other_id, error)


def _hand_over(api, server_id, other_id):
    end_s = time.monotonic() + _PATIENCE_S

    def texts(handler):
        return [api.read(each, handler).strip()
                for each in (server_id, other_id)]
    if texts(_STATE)[0] != _ACTIVE:
        return
    _until(lambda: _is_copied(*texts(_COPIES)), other_id, _COPIES, end_s)
    api.write(server_id, [[_RESIGN, '']], patience_s=0)
    _until(lambda: texts(_STATE)[1] == _ACTIVE, other_id, _STATE, end_s)


def _is_copied(own, other):
    """Return whether the other guest has all flows.

    One that began again just now has other numbers than this one knows.
    """
    lines = set(own.splitlines())
    return own == _NO_FLOWS or (
        _COPIED <= lines and _connection(own)
        and _connection(own) == _connection(other)[::-1])


def _connection(text):
    """Return the numbers of both ends of a guest's connection."""
    return next((line.split()[1:] for line in text.splitlines()
                 if line.startswith(_CONNECTION)), [])


def _until(is_reached, other_id, handler, end_s):
    """Wait until something is so; not for ever."""
    while not is_reached():
        if time.monotonic() > end_s:
            LOG.warning('server %s does not take the work over after %d s, by '
                        '%s, and its pair goes on', other_id, _PATIENCE_S,
                        handler)
            return
        time.sleep(_PAUSE_S)
