# SPDX-License-Identifier: Apache-2.0
"""What tenants read of a failed operation: Tacker shows an error's text."""

from clickos_client import host_text
from keystoneauth1 import exceptions as ks_exceptions
from openstack import exceptions as sdk_exceptions
from tacker.common import exceptions

#: Errors whose texts are for people; those of others may have anything.
_TOLD = (exceptions.TackerException, sdk_exceptions.SDKException,
         ks_exceptions.ClientException)
#: What a heal may wrap; each text ends with the reason.
_WRAPPERS = (exceptions.VnfHealFailed, exceptions.VnfInstantiationFailed)


def for_tenants(error):
    """Return what a tenant may read of an error; the caller logs the whole.
    """
    return host_text.without_places(str(error)) if isinstance(error, _TOLD) \
        else type(error).__name__


class HealFailed(exceptions.VnfHealFailed):
    """Tacker's error of a heal, whose text names the heal once.

    Tacker catches a failed heal twice, and heals a whole VNF by an
    instantiation. Each level puts words before the reason.
    """

    def __init__(self, message=None, **named):
        reason = str(named.get('error', ''))
        begins = [kind.message % {'id': named.get('id'), 'error': ''}
                  for kind in _WRAPPERS]
        while begin := next(filter(reason.startswith, begins), ''):
            reason = reason.removeprefix(begin)
        super().__init__(message, **{**named, 'error': reason})


def install():
    """Let Tacker raise HealFailed; may be called again."""
    exceptions.VnfHealFailed = HealFailed
