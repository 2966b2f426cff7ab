# SPDX-License-Identifier: Apache-2.0
"""The errors of Tacker and clickos-api, as Horizon sorts errors."""

from clickos_client import api
from clickos_client import chains
from keystoneauth1 import exceptions as ks_exc


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
