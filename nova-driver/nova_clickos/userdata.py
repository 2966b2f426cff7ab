# SPDX-License-Identifier: Apache-2.0
"""What a tenant hands over as user_data: a Click configuration."""

import base64
import binascii
import dataclasses
import json
import re

from nova_clickos import exception

#: Bytes of user_data before base64, what fits into Nova's field.
MAX_BYTES = 48 * 1024
MAX_WRITES = 256
MAX_HANDLER_NAME = 255
DEFAULT_NAME = 'user_data'
_NAME = re.compile(r'[A-Za-z0-9_.-]{1,64}')
_KEYS = frozenset(('clickos', 'config_name', 'config', 'writes'))
# No Click configuration begins so: a string is not a statement.
_DOCUMENT = re.compile(r'\s*\{\s*"')


@dataclasses.dataclass(frozen=True)
class Configuration:
    """A Click configuration and the handler writes that complete it."""

    config: str
    config_name: str = DEFAULT_NAME
    writes: tuple = ()

    def updated(self, writes):
        """Add writes made since; they replace those of the same handler.

        :param writes: pairs (handler, value), oldest first.
        :returns: a new Configuration
        """
        newer = {handler for handler, _ in writes}
        kept = tuple(w for w in self.writes if w[0] not in newer)
        return dataclasses.replace(self, writes=kept + tuple(writes))


def parse(user_data):
    """Read user_data, the configuration's text or a JSON document.

    :param user_data: as in the instance, base64, or None.
    :returns: Configuration
    :raises: GuestNotStarted naming the place and what is expected there
    """
    text = _decode(user_data)
    if _DOCUMENT.match(text):
        return _from_document(text)
    return Configuration(_config(text, 'user_data'))


def _decode(user_data):
    if not user_data:
        raise _bad('a ClickOS server needs its Click configuration as '
                   'user_data')
    try:
        raw = base64.b64decode(''.join(user_data.split()), validate=True)
    except (binascii.Error, ValueError) as e:
        raise _bad('user_data: not base64: %s' % e)
    if len(raw) > MAX_BYTES:
        raise _bad('user_data: %d bytes, at most %d are possible'
                   % (len(raw), MAX_BYTES))
    try:
        return raw.decode()
    except UnicodeDecodeError as e:
        raise _bad('user_data: byte %d is not UTF-8' % e.start)


def _from_document(text):
    document = _json(text)
    if document.get('clickos') != 1 or document['clickos'] is True:
        raise _bad('user_data: "clickos": expected 1, the version of the '
                   'format')
    unknown = sorted(set(document) - _KEYS)
    if unknown:
        raise _bad('user_data: unknown key "%s"' % unknown[0][:64])
    name = document.get('config_name', DEFAULT_NAME)
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise _bad('user_data: "config_name": expected 1 to 64 letters, '
                   'digits, ".", "_" or "-"')
    return Configuration(_config(document.get('config'), 'user_data: config'),
                         name, _writes(document.get('writes', [])))


def _json(text):
    try:
        return json.loads(text)
    except json.JSONDecodeError as e:
        raise _bad('user_data:%d:%d: %s' % (e.lineno, e.colno, e.msg))
    except (ValueError, RecursionError) as e:
        raise _bad('user_data: not usable as JSON: %s' % e)


def _config(config, place):
    if not isinstance(config, str) or not config.strip():
        raise _bad('%s: the Click configuration is missing' % place)
    _check_text(config, place)
    return config


def _writes(writes):
    if not isinstance(writes, list) or len(writes) > MAX_WRITES:
        raise _bad('user_data: "writes": expected a list of at most %d pairs '
                   '[handler, value]' % MAX_WRITES)
    return tuple(_write(i, write) for i, write in enumerate(writes))


def _write(index, write):
    if (not isinstance(write, list) or len(write) != 2
            or not all(isinstance(part, str) for part in write)
            or not 1 <= len(write[0]) <= MAX_HANDLER_NAME):
        raise _bad('user_data: "writes"[%d]: expected [handler, value], two '
                   'strings' % index)
    for part in write:
        _check_text(part, 'user_data: "writes"[%d]' % index)
    return tuple(write)


def _check_text(text, place):
    if '\0' in text:
        raise _bad('%s: contains a NUL character' % place)
    if any('\ud800' <= c <= '\udfff' for c in text):  # JSON lets them in
        raise _bad('%s: contains half of a surrogate pair' % place)


def _bad(reason):
    return exception.GuestNotStarted(reason=reason)
