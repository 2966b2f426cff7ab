# SPDX-License-Identifier: Apache-2.0
"""Changes of a VNF that Tacker can store and read again.

Tacker 16 accepts any JSON as metadata but stores only text. Anything else
fails inside a transaction, puts the VNF into ERROR and leaves its row locked.
It stores the vimConnectionInfo of a change without a check. Then it can read
neither this VNF nor a list with it.
"""

import json

from tacker_clickos import exception
from tacker_clickos import state

MAX_REQUEST = 1024 * 1024
_SCALARS = (str, int, float, type(None))
#: a list Tacker takes out itself, for Kubernetes VNFs
_TACKERS = 'configmap_secret_paths'
_OURS = (state.REQUEST, state.UPDATE, state.STATE, state.OUTPUTS)


def make_storable(body):
    """Turn a PATCH's clickos_properties into text, refuse the rest.

    :raises: RequestRefused
    """
    if 'vimConnectionInfo' in body:
        raise _refused('vimConnectionInfo: a VNF keeps its VIM; terminate it,'
                       ' and instantiate it at another one')
    if 'metadata' in body:
        body['metadata'] = _storable(body['metadata'])


def _storable(metadata):
    if not isinstance(metadata, dict):
        raise _refused('metadata: expected an object, got %s'
                       % type(metadata).__name__)
    kept = {}
    for name, value in metadata.items():
        if name in _OURS:
            raise _refused('metadata %s is written by ClickOS only' % name)
        if name == state.PROPERTIES:
            kept[state.REQUEST] = _properties(value)
        elif name == _TACKERS or isinstance(value, _SCALARS):
            kept[name] = value
        else:
            raise _refused('metadata %s: Tacker can store text only, got %s'
                           % (name, type(value).__name__))
    return kept


def _properties(value):
    text = value if isinstance(value, str) else json.dumps(value)
    if len(text) > MAX_REQUEST:
        raise _refused('metadata %s: %d characters, the limit is %d'
                       % (state.PROPERTIES, len(text), MAX_REQUEST))
    return text


def _refused(reason):
    return exception.RequestRefused(reason=reason)
