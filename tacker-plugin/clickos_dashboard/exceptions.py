# SPDX-License-Identifier: Apache-2.0
"""The errors of Tacker and clickos-api, as Horizon sorts errors."""

import re

from clickos_client import api
from clickos_client import chains
from django.utils.translation import gettext as _
from keystoneauth1 import exceptions as ks_exc

_ADDRESS = re.compile(r'https?://|ConnectionPool\(', re.IGNORECASE)


class TackerError(Exception):
    """Tacker's refusal.

    :ivar status: the HTTP status
    """

    def __init__(self, status, message):
        super().__init__(message)
        self.status = status


class NotFound(TackerError):
    """Tacker has no such object in this project."""


class DescriptorError(Exception):
    """A package whose descriptor cannot be shown: file and reason."""


NOT_FOUND = (NotFound,)
UNAUTHORIZED = (ks_exc.Unauthorized,)
RECOVERABLE = (TackerError, DescriptorError, api.ClickOSError,
               chains.ChainError, ks_exc.ClientException)


def reason(exc):
    """Return an error's text, if it does not say where a service is.

    The texts of services that answer are shown as they are.
    """
    text = str(exc)
    if not isinstance(exc, RECOVERABLE) and _ADDRESS.search(text):
        return _('a service of the cloud does not answer')
    return text
