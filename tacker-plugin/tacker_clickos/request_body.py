# SPDX-License-Identifier: Apache-2.0
"""What a JSON body may ask of Tacker: no foreign URL, no code, no SQL."""

import json
import math
import re

from tacker_clickos import exception
from tacker_clickos import urls

MAX_BODY = 2 * 1024 * 1024
MAX_DEPTH = 32
#: Values and keys of a body; a firewall's 10,000 rules are 10,000 values.
MAX_VALUES = 65536
#: Keys whose values Tacker or a guest keeps as text and never fetches.
_TEXT_KEYS = ('clickos_properties', 'description', 'metadata', 'password',
              'userDefinedData', 'vnfInstanceDescription')
#: Ends of the keys whose values Tacker fetches or may fetch one day.
_FETCHED_KEYS = ('url', 'uri', 'endpoint', 'href')
#: Parameters of Tacker's drivers that name scripts or files of a package.
_CODE = re.compile(r'lcm[-_]', re.IGNORECASE)
_TEXT, _CHECKED, _FETCHED = 'text', 'checked', 'fetched'
#: Strings as json.dumps writes them, and text that is no SQL.
_STRINGS = re.compile(r'"((?:[^"\\]|\\.)*)"')
_PLAIN = re.compile(r'[A-Za-z0-9_.+ -]*\Z')
_NOT_A_LETTER = re.compile(r'[^a-z]')


def parse(raw, scripts=False):
    """Return the JSON object of a request that asks for nothing foreign.

    :param scripts: whether it may name scripts, see policy.py
    :raises: RequestRefused, UrlRefused
    """
    # Python makes a list of two bytes in the time of a long text.
    if raw.count(b'[') + raw.count(b'{') > MAX_VALUES:
        raise _too_many()
    try:
        body = json.loads(raw, parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:
        raise exception.RequestRefused(
            reason='the body is not JSON: %s' % error)
    if not isinstance(body, dict):
        raise exception.RequestRefused(
            reason='the body is not a JSON object')
    _check(body, scripts)
    _check_filter(body.get('filter'))
    return body


def _too_many():
    return exception.RequestRefused(
        reason='the body has more than %d values' % MAX_VALUES)


def _no_constant(name):
    """Refuse NaN and Infinity, which Python reads and JSON has not."""
    raise ValueError('%s is not a JSON number' % name)


def _check_filter(wanted):
    """Refuse a subscription's filter that Tacker would run as SQL.

    Tacker 16 puts its names and values into a statement as they are.
    """
    for text in _STRINGS.findall(json.dumps(wanted)):
        if not _PLAIN.match(text):
            raise exception.RequestRefused(
                reason='filter: %s: expected letters, digits, spaces and '
                '"_", ".", "+" or "-" only' % text[:64])


def _check(body, scripts):
    waiting, count = [((), body, _CHECKED)], 0
    while waiting:
        place, value, rule = waiting.pop()
        count += len(value) if isinstance(value, (dict, list)) else 0
        if count > MAX_VALUES:
            raise _too_many()
        if len(place) > MAX_DEPTH:
            raise exception.RequestRefused(
                reason='the body has more than %d levels' % MAX_DEPTH)
        if isinstance(value, dict):
            waiting.extend(
                (place + (key[:64],), item, _rule(key, rule, scripts))
                for key, item in value.items())
        elif isinstance(value, list):
            waiting.extend((place + (str(number),), item, rule)
                           for number, item in enumerate(value))
        elif isinstance(value, str):
            _check_text(place, value, rule)
        elif isinstance(value, float) and not math.isfinite(value):
            raise exception.RequestRefused(
                reason='%s: the number is too large' % '.'.join(place))


def _rule(key, outer, scripts):
    """Return what holds for the value of a key."""
    if outer == _TEXT or key in _TEXT_KEYS:
        return _TEXT
    if _CODE.match(key) and not scripts:
        raise exception.RequestRefused(
            reason='%s: ClickOS runs no script of a request; remove it'
            % key[:64])
    plain = _NOT_A_LETTER.sub('', key.lower()).rstrip('s')
    return _FETCHED if plain.endswith(_FETCHED_KEYS) else outer


def _check_text(place, text, rule):
    if rule == _TEXT or not text:
        return
    if rule == _FETCHED or urls.looks_like_one(text):
        urls.require('.'.join(place), text)
