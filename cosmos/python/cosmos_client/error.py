# SPDX-License-Identifier: Apache-2.0
"""The one exception of this package."""


class CosmosError(Exception):
    """A request that a daemon refused, or that never reached it.

    :ivar code: one of the daemon's error codes (docs/interfaces.md), or one
        of this client's own: ``unavailable`` (no daemon behind the socket,
        or it hung up), ``client-timeout`` (no answer within the deadline;
        the daemon may still be working on the request), ``too-long`` (a
        line above the protocol's limit), ``bad-answer`` (not the protocol).
    :ivar message: text for a person; a guest's own words for ``bad-config``.
    """

    def __init__(self, code, message):
        super().__init__('%s: %s' % (code, message))
        self.code = code
        self.message = message

    def __reduce__(self):
        return (type(self), (self.code, self.message))
