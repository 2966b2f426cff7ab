# SPDX-License-Identifier: Apache-2.0
"""The user_data of a ClickOS server (docs/interfaces.md)."""

import base64
import binascii
import dataclasses
import hashlib
import json
import re

from clickos_client import limits
from clickos_client import plain_json
from clickos_client import secrets as _secrets

#: The version of the format.
FORMAT = 1
DEFAULT_NAME = 'user_data'
_NAME = re.compile(r'[A-Za-z0-9_.-]{1,64}')
_UUID = re.compile(r'[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}')
_KEYS = frozenset(('clickos', 'config_name', 'config', 'writes'))
# No Click configuration begins so: a string is not a statement.
_DOCUMENT = re.compile(r'\s*\{\s*"')
#: What the Nova driver puts before a configuration with variables of ports.
_PORTS = re.compile(r'define\(\$PORT[\d_][^)]*\);\n# 1 "[^"\n]*"\n')


class DocumentError(ValueError):
    """user_data is not what the format asks for; the text names the place."""


class TooLong(DocumentError):
    """The document does not fit into Nova's field.

    :ivar size: bytes before base64
    """

    def __init__(self, size):
        super().__init__('user_data: %d bytes, at most %d are possible'
                         % (size, limits.USER_DATA_BYTES))
        self.size = size


def overlay(writes, newer):
    """Return [[handler, value]] with newer writes in place of older.

    :param newer: pairs, oldest first; they follow those that stay
    """
    names = {name for name, _value in newer}
    return [list(pair) for pair in writes if pair[0] not in names] + [
        list(pair) for pair in newer]


@dataclasses.dataclass(frozen=True)
class Configuration:
    """A Click configuration and the handler writes that complete it.

    :ivar writes: pairs (handler, value)
    :ivar secrets: that the writes refer to; no part of user_data
    """

    config: str
    config_name: str = DEFAULT_NAME
    writes: tuple = ()
    secrets: _secrets.Secrets = _secrets.Secrets()

    def updated(self, writes):
        """Return a copy with writes made since.

        :param writes: pairs (handler, value), oldest first
        """
        return dataclasses.replace(
            self, writes=tuple(map(tuple, overlay(self.writes, writes))))

    def user_data(self):
        """Return the document as Nova wants it, in base64.

        :raises: TooLong
        """
        raw = json.dumps({
            'clickos': FORMAT, 'config_name': self.config_name,
            'config': self.config, 'writes': self.writes}).encode()
        if len(raw) > limits.USER_DATA_BYTES:
            raise TooLong(len(raw))
        return base64.b64encode(raw).decode()


@dataclasses.dataclass(frozen=True)
class Desired:
    """Changes by a server's tenant since its first start.

    :ivar writes: pairs (handler, value), oldest first
    :ivar configuration: the Configuration that replaced the first one, or
        None
    :ivar replaces: digest() of the user_data that it replaced, if known
    :ivar revision: how many changes the state has
    :ivar number: of the newest change, with a verdict or without one
    :ivar secrets: that the writes refer to
    """

    writes: tuple = ()
    configuration: Configuration | None = None
    replaces: str | None = None
    revision: int = 0
    number: int = 0
    secrets: _secrets.Secrets = _secrets.Secrets()

    def onto(self, first, user_data):
        """Return the Configuration to start with.

        A server that was rebuilt with other user_data starts with that.

        :param first: the Configuration of user_data
        :param user_data: as in the instance, base64, or None
        """
        holds = self.replaces in (None, digest(user_data))
        chosen = self.configuration if self.configuration and holds else first
        return chosen.updated(self.writes)


def without_ports(text):
    """Return a running configuration as it was before Nova's driver.

    Its variables of ports get the addresses of the next server.
    """
    found = _PORTS.match(text)
    return text[found.end():] if found else text


def digest(user_data):
    """Return a short text that differs between different user_data.

    :param user_data: as in the instance, base64, or None
    """
    return hashlib.sha256((user_data or '').encode()).hexdigest()


def reference(user_data):
    """Return the UUID of the state that user_data refers to, or None.

    :param user_data: as in the instance, base64, or None
    :raises: DocumentError if user_data is a reference and not a good one
    """
    text = _decode(user_data) if user_data else ''
    if not _DOCUMENT.match(text):
        return None
    document = _json(text)
    if 'state' not in document:
        return None
    if set(document) != {'clickos', 'state'} or document['clickos'] != FORMAT:
        raise DocumentError('user_data: "state": expected no other key but'
                            ' "clickos": %d' % FORMAT)
    if not isinstance(document['state'], str) \
            or not _UUID.fullmatch(document['state']):
        raise DocumentError('user_data: "state": expected a UUID')
    return document['state']


def referring(state_id):
    """Return the user_data, in base64, of a server with a state."""
    raw = json.dumps({'clickos': FORMAT, 'state': state_id}).encode()
    return base64.b64encode(raw).decode()


def replacement(config, config_name='config'):
    """Return the Configuration that is to replace a running one.

    :raises: DocumentError naming the place and what is expected there
    """
    _check_name(config_name, 'config_name')
    _config(config, 'config')
    size = len(config.encode())
    if size > limits.CONFIG_BYTES:
        raise DocumentError('config: %d bytes, at most %d are possible'
                            % (size, limits.CONFIG_BYTES))
    return Configuration(config, config_name)


def parse(user_data):
    """Read user_data, the configuration's text or a JSON document.

    :param user_data: as in the instance, base64, or None
    :returns: Configuration
    :raises: DocumentError naming the place and what is expected there
    """
    text = _decode(user_data)
    if _DOCUMENT.match(text):
        return _from_document(text)
    return Configuration(_config(text, 'user_data'))


def _decode(user_data):
    if not user_data:
        raise DocumentError('a ClickOS server needs its Click configuration '
                            'as user_data')
    try:
        raw = base64.b64decode(''.join(user_data.split()), validate=True)
    except (binascii.Error, ValueError) as e:
        raise DocumentError('user_data: not base64: %s' % e)
    if len(raw) > limits.USER_DATA_BYTES:
        raise TooLong(len(raw))
    try:
        return raw.decode()
    except UnicodeDecodeError as e:
        raise DocumentError('user_data: byte %d is not UTF-8' % e.start)


def _from_document(text):
    document = _json(text)
    if document.get('clickos') != FORMAT or document['clickos'] is True:
        raise DocumentError('user_data: "clickos": expected %d, the version '
                            'of the format' % FORMAT)
    unknown = sorted(set(document) - _KEYS)
    if unknown:
        raise DocumentError('user_data: unknown key "%s"' % unknown[0][:64])
    name = document.get('config_name', DEFAULT_NAME)
    _check_name(name, 'user_data: "config_name"')
    return Configuration(_config(document.get('config'), 'user_data: config'),
                         name, _writes(document.get('writes', [])))


def _json(text):
    try:
        return plain_json.loads(text)
    except json.JSONDecodeError as e:
        raise DocumentError('user_data:%d:%d: %s' % (e.lineno, e.colno, e.msg))
    except ValueError as e:
        raise DocumentError('user_data: not usable as JSON: %s' % e)


def _config(config, place):
    if not isinstance(config, str) or not config.strip():
        raise DocumentError('%s: the Click configuration is missing' % place)
    _check_text(config, place)
    return config


def _writes(writes):
    if not isinstance(writes, list) or len(writes) > limits.WRITES:
        raise DocumentError('user_data: "writes": expected a list of at most '
                            '%d pairs [handler, value]' % limits.WRITES)
    return tuple(_write(i, write) for i, write in enumerate(writes))


def _write(index, write):
    if (not isinstance(write, list) or len(write) != 2
            or not all(isinstance(part, str) for part in write)
            or not 1 <= len(write[0]) <= limits.HANDLER_NAME):
        raise DocumentError('user_data: "writes"[%d]: expected [handler, '
                            'value], two strings' % index)
    for part in write:
        _check_text(part, 'user_data: "writes"[%d]' % index)
    return tuple(write)


def _check_name(name, place):
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise DocumentError('%s: expected 1 to 64 letters, digits, ".", "_" '
                            'or "-"' % place)


def _check_text(text, place):
    if '\0' in text:
        raise DocumentError('%s: contains a NUL character' % place)
    if any('\ud800' <= c <= '\udfff' for c in text):  # JSON lets them in
        raise DocumentError('%s: contains half of a surrogate pair' % place)
