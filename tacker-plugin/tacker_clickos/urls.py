# SPDX-License-Identifier: Apache-2.0
"""Which URLs of a member Tacker may ask: those the operator lists.

The filter refuses every other URL and resolves no name. An entry covers its
own scheme, host and port, and the paths below its own. Hosts are compared as
text, so another spelling or name of a listed address does not pass.
"""

import re

from oslo_config import cfg

from tacker_clickos import conf
from tacker_clickos import exception

MAX_SHOWN = 200
_URL = re.compile(
    r'(https?)://([a-z0-9.-]+|\[[0-9a-f:.]+\])(?::([0-9]{1,5}))?'
    r'((?:/[a-z0-9_~.-]+)*)/?\Z', re.IGNORECASE | re.ASCII)
_PORTS = {'http': '80', 'https': '443'}
_SCHEME = re.compile(
    r'[\x00-\x20]*(?:[a-z][a-z0-9+.-]*:[/\\]|'
    r'(?:file|data|ftps?|https?|gopher|unix|jar|local_file):)',
    re.IGNORECASE)


def looks_like_one(text):
    """Return whether a library may take a text for a URL."""
    return bool(_SCHEME.match(text))


def is_allowed(url):
    """Return whether Tacker may send a request to this URL of a member."""
    conf.register()
    wanted = _parts(url)
    return wanted is not None and any(
        _covers(_parts(entry), wanted)
        for entry in cfg.CONF.clickos.allowed_urls)


def require(place, url):
    """Refuse a URL that the operator does not list.

    :param place: the field it stands in
    :raises: UrlRefused
    """
    if not is_allowed(url):
        raise exception.UrlRefused(place=place, url=str(url)[:MAX_SHOWN])


def _parts(url):
    """Return (scheme, host, port, path segments); None if it has more."""
    found = _URL.match(url) if isinstance(url, str) else None
    if not found:
        return None
    scheme, host, port, path = found.groups()
    segments = path.split('/')[1:]
    if '.' in segments or '..' in segments:
        return None
    scheme = scheme.lower()
    return (scheme, host.lower(), str(int(port or _PORTS[scheme])), segments)


def _covers(entry, wanted):
    return (entry is not None and entry[:3] == wanted[:3]
            and wanted[3][:len(entry[3])] == entry[3])
