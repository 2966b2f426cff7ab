# SPDX-License-Identifier: Apache-2.0
"""From a VDU's configuration to the user_data of its server."""

import dataclasses
import json

from clickos_client import document
from clickos_client import limits

from tacker_clickos.clickgen import prelude
from tacker_clickos.clickgen import writes as click_writes
from tacker_clickos import exception

#: Bytes of handler writes in user_data, beside a configuration's 24,000.
INLINE_BYTES = 16000
#: Bytes of all handler writes of a guest; clickos-api keeps as many.
MAX_BYTES = limits.VALUES_BYTES
_SECRET = 'clickos-secret:'  # nosec B105


def render(configuration, interfaces, values, newer_writes=()):
    """Return the guest's document.Configuration.

    :param newer_writes: [[handler, value]] that replace those of the values,
        as the desired state of a healed guest does
    """
    writes = click_writes.render(configuration, values)
    return document.Configuration(
        prelude.render(configuration, interfaces, values)
        + configuration.text,
        configuration.file_name, tuple(writes)).updated(newer_writes)


def split(configuration):
    """Return a Configuration that fits user_data, and the writes that do not.

    The longest writes go, and all that name a secret: clickos-api alone
    gives those out. They reach the guest when it runs.
    """
    later = {index for index, (_name, value)
             in enumerate(configuration.writes)
             if value.startswith(_SECRET)}
    by_size = sorted(range(len(configuration.writes)),
                     key=lambda index: -len(configuration.writes[index][1]))
    for index in by_size:
        if _size(_kept(configuration, later)) <= INLINE_BYTES:
            break
        later.add(index)
    return (dataclasses.replace(configuration,
                                writes=_kept(configuration, later)),
            [list(configuration.writes[index]) for index in sorted(later)])


def _kept(configuration, later):
    return tuple(write for index, write in enumerate(configuration.writes)
                 if index not in later)


def _size(writes):
    return len(json.dumps(writes).encode())


def check_writes(writes):
    """Refuse writes that could not be applied again when the guest is healed.

    :raises: DocumentTooLong
    """
    size = _size(writes)
    if size > MAX_BYTES:
        raise exception.DocumentTooLong(
            what='the property values', size=size, limit=MAX_BYTES)


def user_data(configuration):
    """Return a document.Configuration as Nova wants it.

    :raises: DocumentTooLong; Nova's limit is 48 KiB before base64
    """
    try:
        return configuration.user_data()
    except document.TooLong as e:
        raise exception.DocumentTooLong(
            what='configuration and handler writes of %s'
                 % configuration.config_name,
            size=e.size, limit=limits.USER_DATA_BYTES)
