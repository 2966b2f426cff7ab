# SPDX-License-Identifier: Apache-2.0
"""Pages of lists: ``limit``, ``marker`` and the link to the next page.

As OpenStack's guideline for pagination says. Without ``limit`` a list comes
whole: each has a bound of its own (docs/interfaces.md).
"""

import urllib.parse

from clickos_api import errors

#: Entries of a page that a client may ask for.
MAX_LIMIT = 1000


class Page:
    """The page that a request wants.

    :param request: flask's, with the query
    :raises errors.BadRequest: for a limit that cannot be
    """

    def __init__(self, request):
        self._request = request
        self._limit = _limit(request.args.get('limit'))

    def of(self, name, entries, *keys):
        """Return the page as the body of an answer.

        :param name: of the list in the answer
        :param entries: all of them, dicts in a lasting order
        :param keys: the fields that a marker may have; the link has the
            first one that an entry has
        :raises errors.BadRequest: for a marker that is not in the list
        """
        entries = _after(entries, keys, self._request.args.get('marker'))
        page = entries[:self._limit]
        answer = {name: page}
        if len(entries) > len(page):
            answer[f'{name}_links'] = [{
                'rel': 'next', 'href': _next(
                    self._request, _markers(page[-1], keys)[0])}]
        return answer


def _limit(text):
    if text is None:
        return None
    if not text.isascii() or not text.isdigit() or len(text) > 9 \
            or not 1 <= int(text) <= MAX_LIMIT:
        raise errors.BadRequest(
            f'limit: expected 1 to {MAX_LIMIT}, got {text[:20]!r}')
    return int(text)


def _markers(entry, keys):
    return [str(entry[key]) for key in keys if entry[key] is not None]


def _after(entries, keys, marker):
    if marker is None:
        return entries
    for place, entry in enumerate(entries):
        if marker in _markers(entry, keys):
            return entries[place + 1:]
    raise errors.BadRequest(f'marker: {marker[:64]!r} is not in the list')


def _next(request, marker):
    query = [*((name, value) for name, value in request.args.items(multi=True)
               if name != 'marker'), ('marker', marker)]
    return f'{request.base_url}?{urllib.parse.urlencode(query)}'
