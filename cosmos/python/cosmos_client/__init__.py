# SPDX-License-Identifier: Apache-2.0
"""Client of cosmosd's control socket (docs/interfaces.md, "cosmosd")."""

from cosmos_client.client import CosmosClient
from cosmos_client.client import Session
from cosmos_client.connection import MAX_LINE
from cosmos_client.error import CosmosError
from cosmos_client.events import EventStream

__all__ = ('CosmosClient', 'CosmosError', 'EventStream', 'MAX_LINE',
           'Session')
