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
#: What VRRP says when the other guest has all flows, and in a function
#: without flows.
_COPIED, _NO_FLOWS = {'connected true', 'waiting 0'}, 'off'
#: The other guest gets the flows of a full table in seconds. Whatever the
#: guests say, their pair goes on after this time and one request.
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
    states = [api.read(each, _STATE).strip()
              for each in (server_id, other_id)]
    if states[0] != _ACTIVE:
        return
    _until(api, server_id, _COPIES, _is_copied, end_s)
    api.write(server_id, [[_RESIGN, '']], patience_s=0)
    _until(api, other_id, _STATE, lambda text: text.strip() == _ACTIVE,
           end_s)


def _is_copied(text):
    return text.strip() == _NO_FLOWS or _COPIED <= set(text.splitlines())


def _until(api, server_id, handler, is_reached, end_s):
    """Wait until a handler of a guest has a value; not for ever."""
    while not is_reached(api.read(server_id, handler)):
        if time.monotonic() > end_s:
            LOG.warning('server %s: %s is not as it should be after %d s, '
                        'and its pair goes on', server_id, handler,
                        _PATIENCE_S)
            return
        time.sleep(_PAUSE_S)
