# SPDX-License-Identifier: Apache-2.0
"""Glance: the public ClickOS images of each kind of compute host.

A process host never runs what Glance holds: it takes only the image whose
bytes are those of the engine installed on the host. A Xen host runs the
bytes, and has an image for each profile. The property CLICKOS_IMAGE_GROUPS
tells the groups of elements in an image, and a tag the family that it is of.
A Xen host runs a Linux guest, too: its kernel is an image, which names another
one, the RAM disk.
"""

import hashlib

from clickos_lab.config import options
from clickos_lab.xen import image as _guest
from clickos_lab.xen import linux_image

_CHECKSUM = options.DEFAULTS['CLICKOS_IMAGE_SUM']
_TRAIT = options.DEFAULTS['CLICKOS_IMAGE_TRAIT']
_GROUPS = options.DEFAULTS['CLICKOS_IMAGE_GROUPS']


def ensure(state, admin, host):
    """Upload the images of a host; older images of a name are removed."""
    if host.is_xen:
        for name in _guest.OF_PROFILES:
            profile = name.removeprefix(_guest.CLICKOS)
            _ensure(admin, f'{host.image}{profile}',
                    _guest.folder(state) / name, 'XEN',
                    [host.image] if profile else [],
                    **{_GROUPS: _guest.groups(state, name)})
        if linux_image.is_built(state):
            _ensure_linux(state, admin, host)
    else:
        path = state.binary('clickos-process')
        _ensure(admin, host.image, path, 'PROCESS')


def _ensure_linux(state, admin, host):
    kernel, ramdisk = linux_image.files(state)
    found = _ensure(admin, host.image + linux_image.RAMDISK, ramdisk, 'XEN',
                    disk_format='ari')
    _ensure(admin, host.image + linux_image.KERNEL, kernel, 'XEN',
            disk_format='aki', ramdisk_id=found.id,
            os_command_line=linux_image.COMMAND_LINE)


def _ensure(admin, name, path, kind, tags=(), disk_format='raw', **more):
    wanted = {**_properties(path, kind), **more}
    current = None
    for image in admin.image.images(name=name):
        if _has(image, wanted) and image.status == 'active' \
                and set(tags) <= set(image.tags):
            current = image
        else:
            admin.image.delete_image(image)
    return current or upload(admin, name, path, kind, tags, disk_format,
                             **more)


def _has(image, wanted):
    """Tell whether an image has properties; openstacksdk names some itself."""
    return all(image.properties.get(name, getattr(image, name, None)) == value
               for name, value in wanted.items())


def _properties(path, kind):
    return {_CHECKSUM: hashlib.sha256(path.read_bytes()).hexdigest(),
            # Nova then takes a host of this kind only.
            f'{_TRAIT}{kind}': 'required'}


def upload(admin, name, path, kind, tags=(), disk_format='raw',
           **properties):
    """Make a public image of a host kind from a file; return it.

    :param tags: families that it is of, besides its name's
    :param properties: of the image, besides
    """
    return admin.image.create_image(
        name, filename=str(path), disk_format=disk_format,
        container_format={'raw': 'bare'}.get(disk_format, disk_format),
        visibility='public', wait=True, tags=list(tags),
        **_properties(path, kind), **properties)
