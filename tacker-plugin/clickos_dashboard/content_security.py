# SPDX-License-Identifier: Apache-2.0
"""The Content-Security-Policy of our pages.

Horizon's page has scripts inside its markup. The policy allows those by
their hashes. A script may run only if Horizon's page without our content has
it as well, for that page has no text of a tenant. Markup that a tenant
smuggles in runs no script, and no script makes code of text.
"""

import base64
import hashlib
import re
from urllib import parse

from django.conf import settings
from django.template import loader

HEADER = 'Content-Security-Policy'
#: Sources that a site needs beyond ours: {directive: [source]}.
SETTING = 'CLICKOS_CONTENT_SOURCES'
#: For answers that are no page: nothing is loaded, nothing runs.
_NO_PAGE = "default-src 'none'; frame-ancestors 'none'"
_PAGES = ['horizon', 'clickos']
_FRAME = 'clickos/frame.html'
_INLINE = re.compile(
    r'<script(?![^<>]*\bsrc=)(?![^<>]*\btype="text/html")[^<>]*>'
    r'([^<]*(?:<(?!/script)[^<]*)*)</script', re.IGNORECASE)
#: Hashes that are kept; a page without compressed scripts has some hundred.
_MOST = 1024


class Middleware(object):
    """Adds the policy to the answers of our pages.

    :param get_response: Django's next handler
    """

    def __init__(self, get_response):
        self._get_response = get_response
        self._known = frozenset()

    def __call__(self, request):
        response = self._get_response(request)
        match = request.resolver_match
        if match and match.namespaces[:2] == _PAGES \
                and HEADER not in response:
            response[HEADER] = self._policy(request, response)
        return response

    def _policy(self, request, response):
        if not response.get('Content-Type', '').startswith('text/html'):
            return _NO_PAGE
        return policy(self._hashes(request, response.content.decode()))

    def _hashes(self, request, page):
        """Return the scripts of a page that Horizon's frame has as well."""
        found = _scripts(page)
        if not found <= self._known:
            frame = _scripts(loader.render_to_string(_FRAME,
                                                     request=request))
            known = self._known if len(self._known) < _MOST else frozenset()
            self._known = known | frame
        return found & self._known


def policy(scripts=()):
    """Return the header's value for a page.

    :param scripts: sources of the scripts inside the page
    """
    own = ["'self'", *_origin(settings.STATIC_URL)]
    sources = {
        'default-src': ["'self'"],
        'script-src': [*own, *sorted(scripts)],
        # Angular, Bootstrap and jQuery set styles of elements.
        'style-src': [*own, "'unsafe-inline'"],
        'img-src': [*own, 'data:'], 'font-src': [*own, 'data:'],
        'connect-src': ["'self'"], 'object-src': ["'none'"],
        'base-uri': ["'none'"], 'frame-ancestors': ["'none'"],
        # A log-out may lead to the identity provider.
        'form-action': ["'self'", *_origin(
            settings.WEBSSO_DEFAULT_REDIRECT_LOGOUT)]}
    if not settings.DISALLOW_IFRAME_EMBED:
        del sources['frame-ancestors']
    for directive, more in getattr(settings, SETTING, {}).items():
        sources.setdefault(directive, []).extend(more)
    return '; '.join(' '.join((directive, *each))
                     for directive, each in sources.items())


def _origin(url):
    """Return the origin of an address on another host, as a list."""
    parts = parse.urlsplit(url or '')
    return [f'{parts.scheme or "https"}://{parts.netloc}'] \
        if parts.netloc else []


def _scripts(page):
    """Return the sources of the scripts inside a page's markup."""
    return {_source(text) for text in _INLINE.findall(page) if text.strip()}


def _source(script):
    # A browser hashes the text after it has made each line end one sign.
    text = script.replace('\r\n', '\n').replace('\r', '\n')
    digest = hashlib.sha256(text.encode()).digest()
    return f"'sha256-{base64.b64encode(digest).decode()}'"
