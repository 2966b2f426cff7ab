# SPDX-License-Identifier: Apache-2.0
"""How many requests a project may send in a minute."""

import collections
import threading
import time

from clickos_api import errors

_MINUTE_S = 60
#: Projects whose buckets are kept, the last ones that sent a request.
_PROJECTS = 10000


class Rate:
    """A bucket of tokens for each project.

    :param per_minute: tokens; 0 for no limit
    :param what: the name of the requests, for the message
    """

    def __init__(self, per_minute, what):
        self._per_minute = per_minute
        self._what = what
        self._buckets = collections.OrderedDict()
        self._lock = threading.Lock()

    def take(self, project_id):
        """Take a token of a project.

        :raises errors.TooMany: if it has none
        """
        if not self._per_minute:
            return
        now_s = time.monotonic()
        with self._lock:
            tokens, then_s = self._buckets.pop(
                project_id, (self._per_minute, now_s))
            tokens = min(self._per_minute, tokens
                         + (now_s - then_s) * self._per_minute / _MINUTE_S)
            has_one = tokens >= 1
            self._buckets[project_id] = (tokens - has_one, now_s)
            if len(self._buckets) > _PROJECTS:
                self._buckets.popitem(last=False)
        if not has_one:
            raise errors.TooMany(
                f'project {project_id}: more than {self._per_minute}'
                f' {self._what} in a minute; try again in'
                f' {_MINUTE_S / self._per_minute:.0f} s or later')
