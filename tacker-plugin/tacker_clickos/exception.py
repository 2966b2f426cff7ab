# SPDX-License-Identifier: Apache-2.0
"""Errors of the Tacker drivers.

Tacker shows their text to the tenant: in error.detail of the operation
occurrence or, for an update, in the VNF's metadata.
"""

from clickos_client import outcomes
from tacker.common import exceptions


class ClickOSError(exceptions.TackerException):
    """Base of every error of the ClickOS drivers."""

    message = "ClickOS driver failed: %(reason)s"
    #: of an update that failed so: a word of clickos_client.outcomes
    outcome = outcomes.REFUSED
    #: What the filter before Tacker's API answers, and its headers.
    http_status = 400
    http_headers = {}


class VnfdInvalid(ClickOSError):
    message = "%(place)s: %(reason)s"


class PropertyRefused(ClickOSError):
    message = "property %(name)s: %(reason)s"


class DocumentTooLong(ClickOSError):
    message = "%(what)s is %(size)d bytes long, the limit is %(limit)d"


class ResourceNotUsable(ClickOSError):
    message = "%(kind)s %(name)s: %(reason)s"


class NoImage(ResourceNotUsable):
    """No image has the groups of elements of a configuration."""

    http_status = 409


class PortInChain(ResourceNotUsable):
    """A port has to go that a hop of a chain has."""

    http_status = 409


class GuestFailed(ClickOSError):
    message = "%(name)s (server %(server_id)s): %(reason)s"


class StockFailed(ClickOSError):
    """Tacker's stock driver has failed."""

    message = "%(reason)s"


class Outage(ClickOSError):
    """Another try may succeed without a change by anybody."""


class ServiceAway(Outage):
    """A service did not answer as long as the driver waits for it."""

    message = "%(service)s %(reason)s"


class Unanswered(ServiceAway):
    """A request got no answer, and may have had an effect."""


class ServerFailed(Outage, GuestFailed):
    """Nova gave a server up, and no host says that its guest is the reason.
    """

    message = GuestFailed.message


class ServiceRefused(ClickOSError):
    """Nova, Neutron or Glance refused a request."""

    message = "a service of the cloud answers with HTTP %(status)d: %(reason)s"


class HandlerRefused(ClickOSError):
    """clickos-api answered with an error, as {"error": {code, message}}."""

    message = "%(code)s: %(reason)s"

    def __init__(self, code, reason, status):
        super().__init__(code=code, reason=reason)
        self.code, self.status = code, status
        self.outcome = outcomes.of(code)


class HandlerAway(Outage, HandlerRefused):
    """clickos-api says that a service which it needs is away."""

    message = HandlerRefused.message


class ApiUnavailable(ClickOSError):
    message = "clickos-api: %(reason)s"
    outcome = outcomes.UNKNOWN


class UpdateFailed(ClickOSError):
    """The update of one guest failed; others have their old values again."""

    message = "%(reason)s"

    def __init__(self, reason, outcome):
        super().__init__(reason=reason)
        self.outcome = outcome


class NotSupported(ClickOSError):
    message = "ClickOS VNFs cannot %(operation)s: %(cure)s"


class RequestRefused(ClickOSError):
    message = "%(reason)s"


class UrlRefused(ClickOSError):
    message = ("%(place)s: %(url)r is not covered by the operator's list, "
               "[clickos] allowed_urls of tacker.conf")


class PackageRefused(ClickOSError):
    message = "%(place)s: %(reason)s"


class PackageFaulty(ClickOSError):
    message = "%(faults)s"


class NoSuchObject(ClickOSError):
    """The caller's project has no such object."""

    message = "%(kind)s: %(key)s could not be found"
    http_status = 404


class NotAllowed(ClickOSError):
    """Tacker's policy refuses a request."""

    message = "%(reason)s"
    http_status = 403


class InProgress(ClickOSError):
    """Another operation works on the VNF."""

    message = ("VNF %(vnf_id)s: operation %(name)s %(operation_id)s is "
               "%(state)s; try again when it is over")
    http_status = 409


class BeginsAgain(ClickOSError):
    """Tacker takes a decision about a failed operation already."""

    message = ("operation %(operation_id)s: another request retries, rolls "
               "back or fails it; try again after its answer")
    http_status = 409


class TooManyRequests(ClickOSError):
    """A project has as many requests of a kind as it may."""

    message = "%(reason)s"
    http_status = 429
    http_headers = {'Retry-After': '5'}


class Busy(ClickOSError):
    """All projects together have as many requests as Tacker takes."""

    message = "%(reason)s"
    http_status = 503
    http_headers = {'Retry-After': '5'}


class VnfdInUse(ClickOSError):
    """Another package of the project has the id."""

    message = ("VNFD id %(vnfd_id)s: package %(package_id)s has it; delete "
               "that package, or choose another descriptor_id")
    http_status = 409
