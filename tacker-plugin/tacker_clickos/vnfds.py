# SPDX-License-Identifier: Apache-2.0
"""VNFDs in Tacker's tables: which project's an id is, and which driver's.

Tacker's tables have room for one VNFD of an id. So the conductor stores a
VNFD under an id that is made of the project and the descriptor's own id
(onboarding.py). Requests and answers have the descriptor's id, and the filter
before the API changes one into the other. The row of the VNFD notes the
descriptor's id, and whether ClickOS has the VNFs of it or Tacker's stock
driver (docs/adr/0118-stock-driver.md).
"""

import uuid

from oslo_utils import timeutils
from oslo_utils import uuidutils
import sqlalchemy as sa
from tacker import context as tacker_context
from tacker.db import api as db_api
from tacker.db.db_sqlalchemy import models
from tacker.db.vnfm import vnfm_db

from tacker_clickos import exception

_NAMESPACE = uuid.UUID('8f9f8a52-6d3f-4f0c-9a55-3a3c2f1c1d0e')
#: Begins of a note; the descriptor's id follows.
_OURS, _STOCK = 'clickos: ', 'stock: '
#: Tacker's mark of a package that is not deleted.
_IN_USE = '0'
#: Ids of one query.
_IDS = 500


def key(project_id, descriptor_id):
    """Return the id under which a project's VNFD is stored.

    No project can find a descriptor's id that leads to the key of another.
    """
    return str(uuid.uuid5(_NAMESPACE, '%s/%s' % (project_id, descriptor_id)))


def note(descriptor_id, is_ours):
    """Return what the row of a VNFD has to say; see the module."""
    return (_OURS if is_ours else _STOCK) + descriptor_id


def find(context, descriptor_id):
    """Return the id under which a VNFD of the caller's project is stored.

    :param context: Tacker's, of the request; an admin may name the VNFDs of
        all projects, those of its own first
    :raises: NoSuchObject
    """
    found = isinstance(descriptor_id, str) and _found(
        tacker_context.get_admin_context(), context.project_id, descriptor_id,
        context.is_admin)
    if not found:
        raise exception.NoSuchObject(
            kind='vnfdId: package of this project with the VNFD',
            key=str(descriptor_id)[:64])
    own = [stored for stored, owner in found if owner == context.project_id]
    if len(own or found) > 1:
        raise exception.RequestRefused(
            reason='vnfdId: %s: several projects have a package with it'
            % descriptor_id)
    return own[0] if own else found[0][0]


@db_api.context_manager.reader
def _found(context, project_id, descriptor_id, of_all):
    """Return (stored id, project) of the VNFDs with a descriptor's id.

    VNFDs of an earlier release are stored under the descriptor's own id.
    """
    package, row, vnfd = (models.VnfPackage, models.VnfPackageVnfd,
                          vnfm_db.VNFD)
    query = context.session.query(row.vnfd_id, package.tenant_id).join(
        package, package.id == row.package_uuid).filter(
            row.deleted == _IN_USE)
    if of_all:
        query = query.outerjoin(vnfd, vnfd.id == row.vnfd_id).filter(sa.or_(
            row.vnfd_id == descriptor_id,
            vnfd.description.in_([note(descriptor_id, is_ours)
                                  for is_ours in (True, False)])))
    else:
        query = query.filter(
            package.tenant_id == project_id, row.vnfd_id.in_(
                [descriptor_id, key(project_id, descriptor_id)]))
    return [(stored, owner) for stored, owner in query]


def descriptor_ids(context, stored):
    """Return {stored id: descriptor's id} of those that differ.

    Any text of a tenant may have the id under which another project's VNFD
    would be stored. It must not tell whether there is one.

    :param context: Tacker's, of the request; an admin sees all projects'
    """
    wanted = sorted(stored)
    found = {}
    for at in range(0, len(wanted), _IDS):
        found.update(_notes(tacker_context.get_admin_context(),
                            wanted[at:at + _IDS]))
    shown = {each: text.partition(' ')[2] for each, text in found.items()
             if text and text.startswith((_OURS, _STOCK))}
    return {each: descriptor_id for each, descriptor_id in shown.items()
            if context.is_admin
            or key(context.project_id, descriptor_id) == each}


@db_api.context_manager.reader
def _notes(context, stored):
    vnfd = vnfm_db.VNFD
    return context.session.query(vnfd.id, vnfd.description).filter(
        vnfd.id.in_(stored)).all()


def ours():
    """Return the condition on a VNF instance that ClickOS has it.

    The one place that decides. A VNFD without a note is of a release that
    knew no others.
    """
    return ~_is_stock(models.VnfInstance.vnfd_id)


def _is_stock(vnfd_id):
    vnfd = vnfm_db.VNFD
    return sa.exists().where(vnfd.id == vnfd_id,
                             vnfd.description.like(_STOCK + '%'))


def is_ours(vnf_id):
    """Return whether ClickOS has a VNF, and not Tacker's stock driver."""
    return not _is_true(tacker_context.get_admin_context(),
                        sa.exists().where(models.VnfInstance.id == vnf_id,
                                          ~ours()))


def has_ours(stored):
    """Return whether ClickOS has the VNFs of a VNFD.

    :param stored: what find() returned
    """
    return not _is_true(tacker_context.get_admin_context(), _is_stock(stored))


@db_api.context_manager.reader
def _is_true(context, condition):
    return bool(context.session.query(condition).scalar())


def owner(package_id):
    """Return the project of a package, or None."""
    return _owner(tacker_context.get_admin_context(), package_id)


@db_api.context_manager.reader
def _owner(context, package_id):
    return context.session.query(models.VnfPackage.tenant_id).filter_by(
        id=package_id).scalar()


def release(project_id, descriptor_id):
    """Let a package have a VNFD id that a deleted package had.

    :param project_id: of the package
    :raises: VnfdInUse, if another package of the project has it
    """
    _release(tacker_context.get_admin_context(), project_id, descriptor_id)


@db_api.context_manager.writer
def _release(context, project_id, descriptor_id):
    """Give what Tacker keeps under the id another one.

    Tacker deletes a package and keeps a row of the table vnfd, to which rows
    of deleted VNFs refer. The next on-boarding would fail at that row.
    """
    session = context.session
    stored = key(project_id, descriptor_id)
    _refuse_used(session, project_id, descriptor_id)
    kept = session.query(vnfm_db.VNFD).filter_by(
        id=stored).with_for_update().first()
    if kept is None:
        return
    gone = uuidutils.generate_uuid()
    session.add(vnfm_db.VNFD(
        id=gone, tenant_id=kept.tenant_id, name=gone,
        description=kept.description, mgmt_driver=kept.mgmt_driver,
        deleted_at=timeutils.utcnow()))
    session.flush()
    for model in (vnfm_db.VNF, vnfm_db.VNFDAttribute, vnfm_db.ServiceType):
        session.query(model).filter_by(vnfd_id=stored).update(
            {'vnfd_id': gone}, synchronize_session=False)
    session.query(vnfm_db.VNFD).filter_by(id=stored).delete(
        synchronize_session=False)


def _refuse_used(session, project_id, descriptor_id):
    package, row = models.VnfPackage, models.VnfPackageVnfd
    holder = session.query(row.package_uuid).join(
        package, package.id == row.package_uuid).filter(
            package.tenant_id == project_id, row.deleted == _IN_USE,
            row.vnfd_id.in_([descriptor_id, key(project_id, descriptor_id)])
            ).first()
    if holder is not None:
        raise exception.VnfdInUse(vnfd_id=descriptor_id, package_id=holder[0])
