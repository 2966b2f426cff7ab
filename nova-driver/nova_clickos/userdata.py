# SPDX-License-Identifier: Apache-2.0
"""What a tenant hands over as user_data: a Click configuration."""

from clickos_client import document

from nova_clickos import exception


def parse(user_data):
    """Read user_data, the configuration's text or a JSON document.

    :param user_data: as in the instance, base64, or None.
    :returns: document.Configuration
    :raises: GuestNotStarted naming the place and what is expected there
    """
    try:
        return document.parse(user_data)
    except document.DocumentError as e:
        raise exception.GuestNotStarted(reason=str(e))
