# SPDX-License-Identifier: Apache-2.0
"""What may go wrong, as the caller gets to see it."""


class ApiError(Exception):
    """An answer other than success.

    :param message: what is wrong, where, and what helps; for the caller
    :param code: the machine readable word next to the message
    :param status: the HTTP status
    """

    status = 500
    code = 'internal'

    def __init__(self, message, code=None, status=None):
        super().__init__(message)
        self.message = message
        self.code = code or self.code
        self.status = status or self.status


def body(error):
    """Return the object that tells of an error."""
    return {'error': {'code': error.code, 'message': error.message}}


class BadRequest(ApiError):
    """The request itself is wrong."""

    status = 400
    code = 'bad-request'


class Forbidden(ApiError):
    """The caller's roles or project do not permit this."""

    status = 403
    code = 'forbidden'


class NotFound(ApiError):
    """There is no such server or VNF, or the caller may not see it."""

    status = 404
    code = 'no-such-server'


class TooLarge(ApiError):
    """The request, or what it would make, is larger than a limit."""

    status = 413
    code = 'too-large'


class TooMany(ApiError):
    """The project sends more requests than it may."""

    status = 429
    code = 'too-many-requests'


class Dead(ApiError):
    """The server or VNF exists, but has no running guest."""

    status = 409
    code = 'dead-guest'


class BadGateway(ApiError):
    """The agent answered with something that is not an answer."""

    status = 502
    code = 'agent-failed'


class Unavailable(ApiError):
    """A service that is needed for this cannot be reached now."""

    status = 503
    code = 'unavailable'


class AgentTimeout(ApiError):
    """The agent did not answer in time."""

    status = 504
    code = 'timeout'
