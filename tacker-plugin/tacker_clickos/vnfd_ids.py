# SPDX-License-Identifier: Apache-2.0
"""VNFD ids of requests and answers: descriptors' own ids (vnfds.py).

Tacker stores a VNFD under another id. This module puts that one into a
request, and the descriptor's id into an answer.
"""

import json
import re
from urllib import parse

from tacker_clickos import exception
from tacker_clickos import vnfds

#: Ids of VNFDs that a query or a subscription may name.
MOST = 32
_UUID = r'[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}'
_IN_QUERY = re.compile(_UUID)
#: A quotation mark inside a text of JSON has a backslash before it, so a text
#: of a tenant does not match.
_IN_ANSWER = re.compile((
    r'(?<!\\)"vnfdIds?": ?(?:"%s"|\[[^\]]*\])' % _UUID).encode())
_STORED = re.compile(('"(%s)"' % _UUID).encode())


def take(context, body):
    """Put the stored ids into the body of a new VNF or subscription.

    :raises: NoSuchObject for a VNFD that the project does not have
    """
    if 'vnfdId' in body:
        body['vnfdId'] = vnfds.find(context, body['vnfdId'])
    filter_ = body.get('filter')
    found = filter_.get('vnfInstanceSubscriptionFilter') \
        if isinstance(filter_, dict) else None
    if isinstance(found, dict) and isinstance(found.get('vnfdIds'), list):
        _require_few(found['vnfdIds'])
        found['vnfdIds'] = [vnfds.find(context, each)
                            for each in found['vnfdIds']]


def take_query(context, query):
    """Return a query with the stored ids.

    An id that no VNFD of the project has stays: nothing is found.
    """
    if 'vnfdId' not in query:
        return query
    text = parse.unquote_plus(query)
    named = set(_IN_QUERY.findall(text))
    _require_few(named)
    for descriptor_id in named:
        try:
            stored = vnfds.find(context, descriptor_id)
        except exception.NoSuchObject:
            continue
        query = query.replace(descriptor_id, stored)
    return query


def _require_few(ids):
    if len(ids) > MOST:
        raise exception.RequestRefused(
            reason='vnfdIds: %d ids, the limit is %d' % (len(ids), MOST))


def give(context, response):
    """Put the descriptors' ids into an answer of Tacker; return it."""
    if context is None or response.content_type != 'application/json' \
            or b'"vnfdId' not in response.body:
        return response
    places = _IN_ANSWER.findall(response.body)
    stored = {each.decode().lower() for place in places
              for each in _STORED.findall(place)}
    shown = vnfds.descriptor_ids(context, stored) if stored else {}
    if shown:
        response.body = _IN_ANSWER.sub(
            lambda place: _STORED.sub(
                lambda found: _replaced(found, shown), place[0]),
            response.body)
    return response


def _replaced(found, shown):
    stored = found[1].decode().lower()
    return json.dumps(shown[stored]).encode() if stored in shown else found[0]
