# SPDX-License-Identifier: Apache-2.0
"""From a VDU's configuration to the user_data of its server."""

import json

from clickos_client import document
from clickos_client import limits

from tacker_clickos.clickgen import prelude
from tacker_clickos.clickgen import writes as click_writes
from tacker_clickos import exception


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


def check_writes(writes):
    """Refuse writes that could not be applied again when the guest is healed.

    :raises: DocumentTooLong
    """
    size = len(json.dumps(writes).encode())
    if size > click_writes.MAX_BYTES:
        raise exception.DocumentTooLong(
            what='the property values', size=size,
            limit=click_writes.MAX_BYTES)


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
