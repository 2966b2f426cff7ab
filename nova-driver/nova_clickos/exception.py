# SPDX-License-Identifier: Apache-2.0
"""Exceptions of the driver, and what cosmosd's error codes become in Nova."""

import contextlib

from clickos_client import host_text
from cosmos_client import CosmosError
from nova import exception
from oslo_log import log as logging

from nova_clickos import fault

LOG = logging.getLogger(__name__)

#: cosmosd's socket gives no useful answer.
_AWAY = frozenset(('unavailable', 'client-timeout', 'bad-answer', 'forbidden'))
#: cosmosd may have carried out the request all the same.
LOST = _AWAY - {'forbidden'}
#: Another host may well be able to start the same guest.
_HOST = frozenset(('no-memory', 'too-many', 'exists', 'state-dir',
                   'internal'))
#: The same, until a daemon of the host answers again.
_DAEMONS = frozenset(('store', 'switch'))


class CosmosdUnavailable(exception.VirtDriverNotReady):
    """cosmosd cannot be reached, or does not accept this client."""

    msg_fmt = "ClickOS host: %(reason)s"


class CosmosdRefused(exception.NovaException):
    """cosmosd refused a request."""

    msg_fmt = "ClickOS: cannot %(action)s: %(reason)s"


class GuestNotStarted(exception.BuildAbortException):
    """A guest cannot start, here or on any other host.

    Nova aborts a build on this exception instead of trying other hosts. It
    copies the text into the instance's fault. A fault has 255 bytes, so the
    text is the reason alone, and ends with "and 3 more" if it is longer.
    """

    msg_fmt = "%(reason)s"

    def __init__(self, reason):
        super().__init__(reason=fault.fitted(reason))


class ServiceUnavailable(GuestNotStarted):
    """A service of the cloud that a start needs does not answer now."""


class StateUnavailable(ServiceUnavailable):
    """A service answers, but not for this guest: it may do so for others."""


class UnacceptableServer(exception.InstanceUnacceptable):
    """A server asks for what no ClickOS host has.

    Nova aborts the build on this exception before it makes block devices.
    """

    msg_fmt = "%(reason)s"


class HostCannotStart(exception.ComputeResourcesUnavailable):
    """A guest cannot start here; Nova tries the next host."""

    msg_fmt = "ClickOS host: %(reason)s"


class DaemonUnavailable(HostCannotStart):
    """xenstored or valed does not answer cosmosd now."""


#: Their texts are written for tenants.
_TOLD = (CosmosdUnavailable, CosmosdRefused, GuestNotStarted,
         UnacceptableServer, HostCannotStart, exception.ImageNotFound)


def for_tenants(error):
    """Return what a tenant may read of an error: itself, or its name.

    The texts of Nova's own errors may have addresses of services.
    """
    return error if isinstance(error, _TOLD) else type(error).__name__


def told(error):
    """Return what a tenant may read of a CosmosError; log what it may not."""
    text = host_text.shown(error.code, error.message)
    if text != error.message:
        LOG.warning('cosmosd: %s: %.1000r', error.code, error.message)
    return text


def from_start(error):
    """Translate why cosmosd's ``create`` failed.

    :param error: CosmosError
    :returns: CosmosdUnavailable, HostCannotStart or GuestNotStarted
    """
    reason = told(error)
    if error.code in _AWAY:
        return CosmosdUnavailable(reason=reason)
    if error.code in _DAEMONS:
        return DaemonUnavailable(reason=reason)
    if error.code in _HOST:
        return HostCannotStart(reason=reason)
    return GuestNotStarted(reason=reason)


@contextlib.contextmanager
def rolled_back():
    """Let a server keep the state that it had before the operation.

    :raises: InstanceFaultRollback, with what was raised inside
    """
    try:
        yield
    except exception.NovaException as e:
        raise exception.InstanceFaultRollback(inner_exception=e) from None


@contextlib.contextmanager
def translated(action, instance=None):
    """Turn CosmosError into a Nova exception.

    :param action: what is being done, as in "cannot <action>".
    :param instance: the instance meant, if one is.
    :raises: InstanceNotFound, CosmosdUnavailable or CosmosdRefused
    """
    try:
        yield
    except CosmosError as e:
        if e.code == 'no-such-guest' and instance is not None:
            raise exception.InstanceNotFound(
                instance_id=instance.uuid) from None
        if e.code in _AWAY:
            raise CosmosdUnavailable(reason=told(e)) from None
        raise CosmosdRefused(action=action, reason=told(e)) from None
