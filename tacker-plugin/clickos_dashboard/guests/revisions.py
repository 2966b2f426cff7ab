# SPDX-License-Identifier: Apache-2.0
"""The earlier configurations of a guest that a user replaced.

Horizon's cache keeps them for each user and guest: clickos-api keeps the
configuration in force only.
"""

from django.core.cache import cache
from django.utils import timezone

#: Configurations that one user keeps of one guest, the newest.
MOST = 8
_KEPT_S = 24 * 3600


def earlier(request, server_id):
    """List {'text', 'replaced_at', 'revision'}, the newest first."""
    return cache.get(_key(request, server_id), [])


def keep(request, server_id, text, revision):
    """Keep a configuration that another one replaced.

    :param revision: of the configuration that replaced it
    """
    entry = {'text': text, 'revision': revision,
             'replaced_at': timezone.now()}
    cache.set(_key(request, server_id),
              [entry, *earlier(request, server_id)][:MOST], _KEPT_S)


def _key(request, server_id):
    return f'clickos-configurations-{request.user.id}-{server_id}'
