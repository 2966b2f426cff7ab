# SPDX-License-Identifier: Apache-2.0
"""A client of cosmosd that waits while cosmosd restarts."""

import time

from cosmos_client import CosmosClient
from cosmos_client import CosmosError
import tenacity

from nova_clickos.conf import CONF

#: cosmosd is not there, or hung up before it answered.
AWAY = 'unavailable'
#: Verbs that may arrive twice.
_REPEATABLE = frozenset((
    'hello', 'host', 'list', 'info', 'destroy', 'console', 'image-list',
    'pause', 'unpause', 'vif-list'))
_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.1, 1


class PatientClient(CosmosClient):
    """Repeats verbs that may arrive twice.

    All calls of one outage together wait for ``[clickos] cosmosd_patience``;
    later ones fail at once, so periodic tasks of Nova do not pile up.
    """

    def __init__(self, socket_path, timeout_s):
        super().__init__(socket_path, timeout_s)
        self._away_since_s = None

    def call(self, verb, /, **args):
        """Ask as the other clients do; again if cosmosd is away."""
        tries = tenacity.Retrying(
            retry=tenacity.retry_if_exception(
                lambda error: verb in _REPEATABLE and _is_away(error)),
            stop=self._is_over, reraise=True,
            wait=tenacity.wait_exponential(_FIRST_PAUSE_S, _LONGEST_PAUSE_S))
        answer = tries(super().call, verb, **args)
        self._away_since_s = None
        return answer

    def _is_over(self, _attempt):
        now_s = time.monotonic()
        if self._away_since_s is None:
            self._away_since_s = now_s
        return now_s - self._away_since_s >= CONF.clickos.cosmosd_patience


def _is_away(error):
    return isinstance(error, CosmosError) and error.code == AWAY
