# SPDX-License-Identifier: Apache-2.0
"""Glance: a public ClickOS image for each compute host.

A process host never runs what Glance holds: it takes only the image whose
bytes are those of the engine installed on the host. A Xen host runs the bytes.
"""

import hashlib

from clickos_lab.config import options
from clickos_lab.xen import image as _guest

_CHECKSUM = options.DEFAULTS['CLICKOS_IMAGE_SUM']
_TRAIT = options.DEFAULTS['CLICKOS_IMAGE_TRAIT']


def ensure(state, admin, host):
    """Upload the image of a host; older images of its name are removed."""
    if host.is_xen:
        path = _guest.folder(state) / _guest.CLICKOS
        _ensure(admin, host.image, path, 'XEN')
    else:
        path = state.binary('clickos-process')
        _ensure(admin, host.image, path, 'PROCESS')


def _ensure(admin, name, path, kind):
    wanted = _properties(path, kind)
    current = False
    for image in admin.image.images(name=name):
        if wanted.items() <= image.properties.items() and \
                image.status == 'active':
            current = True
        else:
            admin.image.delete_image(image)
    if not current:
        upload(admin, name, path, kind)


def _properties(path, kind):
    return {_CHECKSUM: hashlib.sha256(path.read_bytes()).hexdigest(),
            # Nova then takes a host of this kind only.
            f'{_TRAIT}{kind}': 'required'}


def upload(admin, name, path, kind, **properties):
    """Make a public image of a host kind from a file; return it.

    :param properties: of the image, besides
    """
    return admin.image.create_image(
        name, filename=str(path), disk_format='raw',
        container_format='bare', visibility='public', wait=True,
        **_properties(path, kind), **properties)
