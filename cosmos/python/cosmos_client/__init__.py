# SPDX-License-Identifier: Apache-2.0
"""Client of the control sockets (docs/interfaces.md)."""

from cosmos_client.client import CosmosClient
from cosmos_client.client import Daemon
from cosmos_client.client import Session
from cosmos_client.connection import MAX_LINE
from cosmos_client.error import CosmosError
from cosmos_client.events import EventStream

__all__ = ('CosmosClient', 'CosmosError', 'Daemon', 'EventStream',
           'MAX_LINE', 'Session')
