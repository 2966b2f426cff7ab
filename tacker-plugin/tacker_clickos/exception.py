# SPDX-License-Identifier: Apache-2.0
"""Errors of the Tacker drivers.

Tacker shows their text to the tenant: in error.detail of the operation
occurrence or, for an update, in the VNF's metadata.
"""

from tacker.common import exceptions


class ClickOSError(exceptions.TackerException):
    """Base of every error of the ClickOS drivers."""

    message = "ClickOS driver failed: %(reason)s"


class VnfdInvalid(ClickOSError):
    message = "%(place)s: %(reason)s"


class PropertyRefused(ClickOSError):
    message = "property %(name)s: %(reason)s"


class DocumentTooLong(ClickOSError):
    message = "%(what)s is %(size)d bytes long, the limit is %(limit)d"


class ResourceNotUsable(ClickOSError):
    message = "%(kind)s %(name)s: %(reason)s"


class GuestFailed(ClickOSError):
    message = "%(name)s (server %(server_id)s): %(reason)s"


class HandlerRefused(ClickOSError):
    """clickos-api answered with an error, as {"error": {code, message}}."""

    message = "%(code)s: %(reason)s"

    def __init__(self, code, reason, status):
        super().__init__(code=code, reason=reason)
        self.status = status


class ApiUnavailable(ClickOSError):
    message = "clickos-api: %(reason)s"


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


class VnfdTaken(ClickOSError):
    message = ("VNFD id %(vnfd_id)s: a package has it already; delete that "
               "package, or give this one another descriptor_id")
