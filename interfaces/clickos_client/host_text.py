# SPDX-License-Identifier: Apache-2.0
"""Decides what tenants may read of a text that a host or a service wrote.

The callers log the whole text for operators.
"""

import re

#: Characters of a text that tenants get.
MAX_SHOWN = 4000
#: Codes of cosmosd's errors whose texts are a guest's, or about a request.
_OF_TENANT = frozenset((
    'bad-config', 'bad-request', 'handler-error', 'no-such-element',
    'no-such-handler', 'not-permitted'))
_GROUP, _IPV4 = '[0-9A-Fa-f]{1,4}', r'\d{1,3}(?:\.\d{1,3}){3}'
#: Where an address begins and ends; an underscore is no part of one.
_BEGIN, _END = '(?<![0-9A-Za-z])', '(?![0-9A-Za-z])'
#: What follows the two colons of an IPv6 address.
_REST = rf'(?:{_GROUP}:){{0,6}}(?:{_IPV4}|{_GROUP})'
_IPV6 = (
    rf'{_BEGIN}(?:(?:{_GROUP}:){{7}}{_GROUP}|(?:{_GROUP}:){{6}}{_IPV4}'
    rf'|{_GROUP}(?::{_GROUP}){{0,6}}::(?:{_REST})?|::{_REST}){_END}'
    r'(?:%[\w.~-]{0,63}\w)?')
#: Where the name of a host begins. Handlers such as fw.count look alike, and
#: FILE.click:LINE, so only some names are recognized: under a known domain,
#: with a port of four digits, after "host", and after an @. Names of elements
#: have a number there, such as Counter@3.
_WORD = r'(?<![\w.-])'
_DOMAINS = ('arpa|com|corp|example|internal|intranet|lan|local|localdomain|net'
            '|org')
_HOST = (
    rf'{_WORD}(?:\w[\w-]*\.)+(?i:{_DOMAINS})(?![\w-]|\.\w)(?::\d+)?'
    rf'|{_WORD}(?=[A-Za-z_]*[\d.-])[A-Za-z][\w-]*(?:\.[\w-]+)*'
    r'(?<!\.click):\d{4,5}(?![:\d])'
    r'|(?<=\bhost[ =])(?=[\w.-]*\d)[A-Za-z](?:[\w.-]*\w)?'
    r'|(?<![\w.+-])[\w.+-]+@[A-Za-z](?:[\w.-]*\w)?')
#: What a path has until its end.
_STEPS = r"[^\s'\"`:;,)>\]]"
#: URLs, names, addresses, and absolute paths, also behind a word if they
#: begin as paths of a host; no prefix length such as 10.0.0.0/8.
_PLACE = re.compile(
    r"\b\w{1,16}://[^\s'\")>]+|host='[^']*'|port=\d+"
    rf'|\[{_IPV6}\](?::\d+)?|{_IPV6}|(?<![\d.]){_IPV4}(?::\d+)?'
    rf'|{_HOST}|(?<![\w./])/+(?={_STEPS}{{0,256}}[A-Za-z_]){_STEPS}+'
    r'|/+(?:etc|home|mnt|opt|proc|root|run|srv|tmp|usr|var)/'
    rf'{_STEPS}+')
_HIDDEN = '...'


def without_places(text):
    """Return a text without paths, URLs, addresses and names of hosts.

    It is cut to MAX_SHOWN. The name of a host alone is a word as others are.
    """
    return _PLACE.sub(_HIDDEN, text[:MAX_SHOWN])


def shown(code, message):
    """Return what a tenant may read of an error of cosmosd or of its client.

    :param code: of the error; an unknown one is a host's
    """
    return message if code in _OF_TENANT else without_places(message)
