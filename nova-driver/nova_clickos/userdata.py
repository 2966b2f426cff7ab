# SPDX-License-Identifier: Apache-2.0
"""The Click configuration of a server: from its user_data or its image."""

import base64
import dataclasses

from clickos_client import document
from clickos_client import limits
from nova.compute import task_states
from nova.compute import vm_states
from nova import utils

from nova_clickos import exception

#: The property of an image whose servers need no user_data.
IMAGE_PROPERTY = 'clickos_config'
#: Nova cuts a property to 255 bytes, but not inside a character of up to 4.
#: What has at most this number of bytes is whole.
MAX_PROPERTY_BYTES = 251
#: Of a rescued server: it runs, forwards nothing and takes a new one.
RESCUE = document.Configuration('Idle -> Discard;', 'rescue')


def of_instance(instance):
    """Read a server's user_data, or else its image's property.

    :returns: document.Configuration
    :raises: GuestNotStarted naming the place and what is expected there
    """
    text = image_property(instance, IMAGE_PROPERTY)
    if instance.user_data or not text:
        return parse(instance.user_data)
    if len(text.encode()) > MAX_PROPERTY_BYTES:
        raise exception.GuestNotStarted(
            reason='image property %s: at most %d bytes are possible; send '
                   'the configuration as user_data'
                   % (IMAGE_PROPERTY, MAX_PROPERTY_BYTES))
    # Messages of the guest begin with the name of the configuration.
    return dataclasses.replace(
        parse(base64.b64encode(text.encode()).decode()),
        config_name=IMAGE_PROPERTY)


def for_image(configuration):
    """Return the properties of an image whose servers begin so.

    Values of secrets are no part of it, only their ids.

    :raises: GuestNotStarted if they do not fit
    """
    try:
        text = base64.b64decode(configuration.user_data()).decode()
    except document.TooLong as e:
        raise exception.GuestNotStarted(
            reason='snapshot: the configuration and its values take %d bytes,'
                   ' an image has room for %d'
                   % (e.size, limits.USER_DATA_BYTES))
    return {IMAGE_PROPERTY: text}


def adopt(instance, read):
    """Make a long property of the image the user_data of a new server.

    Nova has the first 255 bytes of it, and the image may be deleted.

    :param read: returns a whole property of the image by its name, or None
    :raises: GuestNotStarted
    """
    known = image_property(instance, IMAGE_PROPERTY) or ''
    if instance.user_data or len(known.encode()) <= MAX_PROPERTY_BYTES:
        return
    raw = (read(IMAGE_PROPERTY) or '').encode()
    if len(raw) > limits.USER_DATA_BYTES:
        raise exception.GuestNotStarted(
            reason='image property %s: %d bytes, at most %d are possible'
                   % (IMAGE_PROPERTY, len(raw), limits.USER_DATA_BYTES))
    if raw:
        instance.user_data = base64.b64encode(raw).decode()


def is_rescued(instance):
    """Return whether a server has RESCUE instead of its configuration."""
    return (instance.task_state == task_states.RESCUING
            or instance.vm_state == vm_states.RESCUED
            and instance.task_state != task_states.UNRESCUING)


def image_property(instance, name):
    """Return a property that a server's image had, or None.

    Nova cuts it to 255 bytes.
    """
    return instance.system_metadata.get(utils.SM_IMAGE_PROP_PREFIX + name)


def state_of(instance):
    """Return the UUID of the state that user_data refers to, or None.

    :raises: GuestNotStarted
    """
    try:
        return document.reference(instance.user_data)
    except document.DocumentError as e:
        raise exception.GuestNotStarted(reason=str(e))


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
