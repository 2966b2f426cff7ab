# SPDX-License-Identifier: Apache-2.0
"""What tenants read of a failed operation: Tacker shows an error's text."""

from clickos_client import host_text
from keystoneauth1 import exceptions as ks_exceptions
from openstack import exceptions as sdk_exceptions
from tacker.common import exceptions

#: Errors whose texts are for people; those of others may have anything.
_TOLD = (exceptions.TackerException, sdk_exceptions.SDKException,
         ks_exceptions.ClientException)


def for_tenants(error):
    """Return what a tenant may read of an error; the caller logs the whole.
    """
    return host_text.without_places(str(error)) if isinstance(error, _TOLD) \
        else type(error).__name__
