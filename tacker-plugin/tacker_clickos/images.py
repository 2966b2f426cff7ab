# SPDX-License-Identifier: Apache-2.0
"""Chooses the image of a guest among the profiles of a family.

A VDU names a family. The image of that name is its default. Further images
of the family have the name as a tag. An image's property tells which groups
of elements are in it; an image without the property passes for one with all.
"""

from clickos_client import vnf

from tacker_clickos import elements
from tacker_clickos import exception
from tacker_clickos import own

_CURE = ('ask the operator for the image of the profile full or ids '
         '(docs/operator/images.md), or name another image in sw_image_data')


def choose(connection, family, needed):
    """Return the id of the first image that has the groups of elements.

    The operator's image before a tenant's, the family's name before its tag,
    a small image before a large one.

    :param needed: {group: a class of it}; None if not known
    :raises: ResourceNotUsable, NoImage
    """
    named = own.images(connection, family)
    if not named:
        raise exception.ResourceNotUsable(
            kind='image', name=family, reason='is neither an active public '
            'image of Glance nor an active one of the project')
    if not needed or not _lacking(named[0], needed):
        return named[0].id
    candidates = named + own.tagged_images(connection, family, named)
    for image in candidates:
        if not _lacking(image, needed):
            return image.id
    raise exception.NoImage(kind='image', name=family, reason=_reason(
        min((_lacking(image, needed) for image in candidates), key=len)))


def suits(connection, family, needed, image_id):
    """Return whether a server keeps its image when it is made again.

    If the groups are not known now, each image of the family may be the one
    that was chosen when they were.
    """
    if needed is None:
        named = own.images(connection, family)
        return any(image.id == image_id for image in (
            *named, *own.tagged_images(connection, family, named)))
    return image_id == choose(connection, family, needed)


def _lacking(image, needed):
    """Return {group: class} that an image does not have."""
    groups = (image.properties or {}).get(vnf.IMAGE_GROUPS)
    if groups is None:
        return {}
    has = {group.strip() for group in groups.split(',')}
    return {group: name for group, name in needed.items()
            if group not in has}


def _reason(lacking):
    return ('no image of this name or tag has all groups of elements that '
            'the configuration needs; missing: %s; %s'
            % (elements.shown(lacking), _CURE))
