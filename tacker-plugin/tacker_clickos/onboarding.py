# SPDX-License-Identifier: Apache-2.0
"""What the conductor stores of a VNFD: an id of the project, and a note.

Tacker's conductor has no hook at an on-boarding. So this module stands in for
the one function that reads the package, and fills a column of the table vnfd
that Tacker leaves empty.
"""

import threading

import sqlalchemy as sa
from tacker.common import csar_utils
from tacker.db.vnfm import vnfm_db

from tacker_clickos import exception
from tacker_clickos.package import archive
from tacker_clickos.package import kind
from tacker_clickos import vnfds

_read = csar_utils.load_csar_data
#: (stored id, note) of the package that a thread has read last; the thread
#: stores it next.
_last = threading.local()


def install():
    """Begin in this process; may be called twice."""
    if csar_utils.load_csar_data is not _load:
        csar_utils.load_csar_data = _load
        sa.event.listen(vnfm_db.VNFD, 'before_insert', _write_note)


def _load(context, package_uuid, zip_path):
    """Read a package as Tacker does; the id is that of the project's VNFD.

    A review has no context, and its package no row.
    """
    vnf_data, flavours, artifacts = _read(context, package_uuid, zip_path)
    owner = context and vnfds.owner(package_uuid)
    if not owner:
        return vnf_data, flavours, artifacts
    descriptor_id = str(vnf_data.get('descriptor_id'))
    stored = vnfds.key(owner, descriptor_id)
    _last.note = stored, vnfds.note(descriptor_id, _is_ours(zip_path))
    return dict(vnf_data, descriptor_id=stored), flavours, artifacts


def _is_ours(path):
    """Return whether a package is ClickOS'.

    The filter refuses packages that cannot be read; there may be older ones.
    """
    try:
        with open(path, 'rb') as file:
            return kind.is_ours(archive.read(file))
    except exception.PackageRefused:
        return True


def _write_note(_mapper, _connection, vnfd):
    stored, note = getattr(_last, 'note', (None, None))
    if vnfd.id == stored:
        vnfd.description = note
