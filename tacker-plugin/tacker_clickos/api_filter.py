# SPDX-License-Identifier: Apache-2.0
"""Paste filter before Tacker's v1 LCM API: metadata it can store.

Tacker 16 accepts any JSON as metadata but stores only text; anything else
fails inside a transaction, puts the VNF into ERROR and leaves its row locked.
This filter turns clickos_properties into text and refuses the rest.
"""

import json
import re

import webob
import webob.dec

from tacker_clickos import state

MAX_BODY = 256 * 1024
MAX_REQUEST = 32 * 1024
_INSTANCE = re.compile(r'/vnf_instances/[^/]+/?\Z')
_SCALARS = (str, int, float, type(None))
#: a list Tacker takes out itself, for Kubernetes VNFs
_TACKERS = 'configmap_secret_paths'
_OURS = (state.REQUEST, state.UPDATE, state.STATE)


class _Refused(Exception):
    """Why a request is answered with 400."""


def factory(global_conf, **local_conf):
    """Return the filter, for api-paste.ini."""
    return MetadataFilter


class MetadataFilter(object):
    """Changes PATCH .../vnf_instances/{id}; passes everything else on."""

    def __init__(self, application):
        self._application = application

    @webob.dec.wsgify
    def __call__(self, request):
        if request.method == 'PATCH' and _INSTANCE.search(request.path_info):
            try:
                request.body = _storable(request)
            except _Refused as refused:
                return _problem(str(refused))
        return self._application


def _problem(detail):
    return webob.Response(
        status=400, content_type='application/problem+json',
        charset='utf-8', json_body={
            'title': 'Bad Request', 'status': 400, 'detail': detail})


def _storable(request):
    body = _read(request)
    if 'metadata' in body:
        body['metadata'] = _metadata(body['metadata'])
    return json.dumps(body).encode()


def _read(request):
    raw = request.body_file.read(MAX_BODY + 1)  # its length may be unsaid
    if len(raw) > MAX_BODY:
        raise _Refused('the body is longer than the limit of %d bytes'
                       % MAX_BODY)
    try:
        body = json.loads(raw)
    except (ValueError, RecursionError) as error:
        raise _Refused('the body is not JSON: %s' % error)
    if not isinstance(body, dict):
        raise _Refused('the body is not a JSON object')
    return body


def _metadata(metadata):
    if not isinstance(metadata, dict):
        raise _Refused('metadata: expected an object, got %s'
                       % type(metadata).__name__)
    kept = {}
    for name, value in metadata.items():
        if name in _OURS:
            raise _Refused('metadata %s is written by ClickOS only' % name)
        if name == state.PROPERTIES:
            kept[state.REQUEST] = _properties(value)
        elif name == _TACKERS or isinstance(value, _SCALARS):
            kept[name] = value
        else:
            raise _Refused('metadata %s: Tacker can store text only, got %s'
                           % (name, type(value).__name__))
    return kept


def _properties(value):
    text = value if isinstance(value, str) else json.dumps(value)
    if len(text) > MAX_REQUEST:
        raise _Refused('metadata %s: %d characters, the limit is %d'
                       % (state.PROPERTIES, len(text), MAX_REQUEST))
    return text
