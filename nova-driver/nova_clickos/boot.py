# SPDX-License-Identifier: Apache-2.0
"""Starts of guests after their host has booted.

Nova tries once and puts a server into ERROR whose guest does not start. After
a power cut of a site the other services may boot later than this host.
"""

import time

from nova import exception as nova_exception
from oslo_log import log as logging

from nova_clickos.conf import CONF
from nova_clickos import exception

LOG = logging.getLogger(__name__)

#: Services and daemons that may not have booted yet.
_AWAY = (exception.ServiceUnavailable, exception.CosmosdUnavailable,
         exception.DaemonUnavailable, nova_exception.GlanceConnectionFailed)
_PAUSE_S = 2
#: Seconds for a guest that a service refuses while it serves others.
_SHARE_S = 30


class Patience:
    """Repeats starts until what they need answers, for a limited time.

    All guests of a host share the time: Nova starts them one by one, before
    nova-compute serves requests. So a guest whose own state is unavailable
    waits for _SHARE_S, and all such guests for half of the time.
    """

    def __init__(self, clock=time.monotonic, sleep=time.sleep):
        self._clock, self._sleep = clock, sleep
        self._end_s = None
        #: Seconds that are left for guests whose own state is unavailable.
        self._own_s = 0

    def repeat(self, start, instance):
        """Call a function until it succeeds or fails for another reason.

        :raises: what the function raises, at the latest after ``[clickos]
            resume_timeout``
        """
        if self._end_s is None:
            self._end_s = self._clock() + CONF.clickos.resume_timeout
            self._own_s = CONF.clickos.resume_timeout / 2
        told, share_s = None, min(_SHARE_S, self._own_s)
        while True:
            try:
                return start()
            except _AWAY as e:
                is_own = isinstance(e, exception.StateUnavailable)
                if self._clock() >= self._end_s or is_own and share_s <= 0:
                    raise
                if is_own:
                    share_s -= _PAUSE_S
                    self._own_s -= _PAUSE_S
                if str(e) != told:
                    told = str(e)
                    LOG.warning('The guest starts later: %s', told,
                                instance=instance)
            self._sleep(_PAUSE_S)
