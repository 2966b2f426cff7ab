# SPDX-License-Identifier: Apache-2.0
"""From a VDU's configuration to the state of its guest in clickos-api."""

import json

from clickos_client import document
from clickos_client import limits

from tacker_clickos.clickgen import prelude
from tacker_clickos.clickgen import writes as click_writes
from tacker_clickos import exception

#: Bytes of all handler writes of a guest; clickos-api keeps as many.
MAX_BYTES = limits.VALUES_BYTES


def render(configuration, interfaces, values, statements=''):
    """Return the guest's document.Configuration.

    :param statements: what stands in front of the template's text
    """
    writes = click_writes.render(configuration, values)
    return document.Configuration(
        prelude.render(configuration, interfaces, values, statements)
        + configuration.text,
        configuration.file_name, tuple(writes))


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
