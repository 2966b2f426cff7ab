# SPDX-License-Identifier: Apache-2.0
"""Glance: the public ClickOS images of each kind of compute host.

A process host never runs what Glance holds: it takes only the image whose
bytes are those of the engine installed on the host. A Xen host runs the
bytes, and has an image for each profile. The property CLICKOS_IMAGE_GROUPS
tells the groups of elements in an image, and a tag the family that it is of.
"""

import hashlib

from clickos_lab.config import options
from clickos_lab.xen import image as _guest

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
    else:
        path = state.binary('clickos-process')
        _ensure(admin, host.image, path, 'PROCESS')


def _ensure(admin, name, path, kind, tags=(), **more):
    wanted = {**_properties(path, kind), **more}
    current = False
    for image in admin.image.images(name=name):
        if wanted.items() <= image.properties.items() and \
                image.status == 'active' and set(tags) <= set(image.tags):
            current = True
        else:
            admin.image.delete_image(image)
    if not current:
        upload(admin, name, path, kind, tags, **more)


def _properties(path, kind):
    return {_CHECKSUM: hashlib.sha256(path.read_bytes()).hexdigest(),
            # Nova then takes a host of this kind only.
            f'{_TRAIT}{kind}': 'required'}


def upload(admin, name, path, kind, tags=(), **properties):
    """Make a public image of a host kind from a file; return it.

    :param tags: families that it is of, besides its name's
    :param properties: of the image, besides
    """
    return admin.image.create_image(
        name, filename=str(path), disk_format='raw',
        container_format='bare', visibility='public', wait=True,
        tags=list(tags),
        **_properties(path, kind), **properties)
