# SPDX-License-Identifier: Apache-2.0
"""The user_data document of a ClickOS server (docs/interfaces.md)."""

import base64
import json

from tacker_clickos.clickgen import prelude
from tacker_clickos.clickgen import writes as click_writes
from tacker_clickos import exception

MAX_BYTES = 48 * 1024


def render(configuration, interfaces, values, newer_writes=()):
    """Return the document as a dict.

    :param newer_writes: [[handler, value]] that replace those of the values,
        as the desired state of a healed guest does
    """
    return {
        'clickos': 1,
        'config_name': configuration.file_name,
        'config': prelude.render(configuration, interfaces, values)
        + configuration.text,
        'writes': click_writes.overlay(
            click_writes.render(configuration, values), newer_writes),
    }


def check_writes(writes):
    """Refuse writes that could not be applied again when the guest is healed.

    :raises: DocumentTooLong
    """
    size = len(json.dumps(writes).encode())
    if size > click_writes.MAX_BYTES:
        raise exception.DocumentTooLong(
            what='the property values', size=size,
            limit=click_writes.MAX_BYTES)


def user_data(document):
    """Return the document as Nova wants it.

    :raises: DocumentTooLong; Nova's limit is 48 KiB before base64
    """
    raw = json.dumps(document).encode()
    if len(raw) > MAX_BYTES:
        raise exception.DocumentTooLong(
            what='configuration and handler writes of %s'
                 % document['config_name'],
            size=len(raw), limit=MAX_BYTES)
    return base64.b64encode(raw).decode()
