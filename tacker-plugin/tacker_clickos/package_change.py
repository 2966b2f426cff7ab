# SPDX-License-Identifier: Apache-2.0
"""Gives a VNF another package, in place of Tacker.

Tacker 16 takes the package of another project. If no other VNF has the old
package, its query fails in the middle of a transaction, and the VNF's row
stays locked. So the filter before Tacker changes the rows itself.
"""

from tacker.db import api as db_api
from tacker.db.db_sqlalchemy import models
from tacker.db.vnfm import vnfm_db
from tacker.policies import vnf_lcm

from tacker_clickos import exception
from tacker_clickos import vnfds

_COPIED = ('vnfd_id', 'vnf_provider', 'vnf_product_name',
           'vnf_software_version', 'vnfd_version')


def take(context, vnf_id, body):
    """Do what a PATCH says about the package, and remove it from the body.

    :param context: Tacker's, of the request
    :raises: RequestRefused, NoSuchObject
    """
    if body.get('vnfPkgId') is not None:
        raise exception.RequestRefused(
            reason='vnfPkgId: name the package by its vnfdId')
    vnfd_id = body.pop('vnfdId', None)
    if vnfd_id is None:
        return
    stored = vnfds.find(context, vnfd_id)
    if vnfds.has_ours(stored) != vnfds.is_ours(vnf_id):
        raise exception.RequestRefused(
            reason='vnfdId: the package is for another driver than that of '
            'VNF %s' % vnf_id)
    if not _change(context, vnf_id, stored):
        raise exception.NoSuchObject(
            kind='vnfdId: package of this project with the VNFD',
            key=str(vnfd_id)[:64])


@db_api.context_manager.writer
def _change(context, vnf_id, vnfd_id):
    """Change the rows; return whether the project has the VNFD.

    Tacker answers for a VNF that the project does not have.
    """
    session, project_id = context.session, context.project_id
    vnf = session.query(models.VnfInstance).filter_by(
        id=vnf_id, tenant_id=project_id, deleted=0).with_for_update().first()
    new = _vnfd(session, vnfd_id, project_id)
    if new is None:
        return False
    if vnf is None:
        return True
    context.can(vnf_lcm.VNFLCM % 'update_vnf',
                target={'project_id': project_id})
    if vnf.task_state is not None:
        raise exception.RequestRefused(
            reason='vnfdId: VNF %s is %s; wait until the operation is over'
            % (vnf_id, vnf.task_state))
    old_id, old_package = vnf.vnfd_id, vnf.vnf_pkg_id
    for name in _COPIED:
        setattr(vnf, name, getattr(new, name))
    vnf.vnf_pkg_id = new.package_uuid
    session.query(vnfm_db.VNF).filter_by(id=vnf_id).update(
        {'vnfd_id': vnfd_id})
    session.flush()
    _use(session, new.package_uuid, 'IN_USE')
    if not session.query(models.VnfInstance.id).filter_by(
            vnfd_id=old_id, deleted=0).first():
        _use(session, old_package, 'NOT_IN_USE')
    return True


def _vnfd(session, vnfd_id, project_id):
    return session.query(models.VnfPackageVnfd).join(
        models.VnfPackage,
        models.VnfPackage.id == models.VnfPackageVnfd.package_uuid).filter(
            models.VnfPackageVnfd.vnfd_id == vnfd_id,
            models.VnfPackageVnfd.deleted == 0,
            models.VnfPackage.operational_state == 'ENABLED',
            models.VnfPackage.tenant_id == project_id).first()


def _use(session, package_id, state):
    session.query(models.VnfPackage).filter_by(id=package_id).update(
        {'usage_state': state})
