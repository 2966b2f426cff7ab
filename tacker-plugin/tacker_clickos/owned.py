# SPDX-License-Identifier: Apache-2.0
"""Which objects of Tacker a request may name, by path or body.

Tacker itself judges most ids by project; some foreign ones it answers with
500. Here each id passes one query before Tacker gets the request.
"""

import re

from oslo_utils import uuidutils
import sqlalchemy as sa
from tacker import context as tacker_context
from tacker.db import api as db_api
from tacker.db.db_sqlalchemy import models
from tacker.db.nfvo import nfvo_db

from tacker_clickos import exception

#: Tables of the objects, by the first part of their path (routes.py).
TABLES = {'vims': nfvo_db.Vim, 'vnf_packages': models.VnfPackage,
          'vnf_instances': models.VnfInstance,
          'vnf_lcm_op_occs': models.VnfLcmOpOccs,
          'subscriptions': models.VnfLcmSubscriptions}
#: VIMs that a body may name; a VNF has one.
MAX_VIMS = 16
_SUFFIX = '.json'
#: Keys below which a tenant writes what it likes.
_FREE = ('additionalParams', 'metadata', 'userDefinedData')
_VIM_ID = re.compile(r'vim_?id\Z', re.IGNORECASE)


def require(context, kind, key):
    """Let pass an id of an object that the caller's project has.

    :param context: Tacker's, of the request; an admin has all projects
    :param kind: one of TABLES
    :raises: NoSuchObject
    """
    if not (isinstance(key, str) and uuidutils.is_uuid_like(key)
            and _has(tacker_context.get_admin_context(), TABLES[kind], key,
                     None if context.is_admin else context.project_id)):
        raise exception.NoSuchObject(kind=kind, key=str(key)[:64])


@db_api.context_manager.reader
def _has(context, table, key, project_id):
    return _query(context, table, project_id).filter(
        table.id == key).first() is not None


def _query(context, table, project_id):
    """Return the query of the ids that a project may name; None: of all."""
    query = context.session.query(table.id)
    if project_id is None:
        return query
    is_own = table.tenant_id == project_id
    return query.filter(sa.or_(is_own, table.shared == sa.true())
                        if hasattr(table, 'shared') else is_own)


def require_path(context, path):
    """Judge the id of a path that routes.py has.

    :raises: NoSuchObject
    """
    kind, _, rest = path.strip('/').partition('/')
    if rest:
        key = rest.partition('/')[0]
        require(context, kind, key.removesuffix(_SUFFIX))


def require_vims(context, body):
    """Judge the VIMs that a body names, at any depth, with one query.

    :raises: NoSuchObject, RequestRefused
    """
    named = _vims(body)
    if not named:
        return
    own = _own_vims(tacker_context.get_admin_context(), named,
                    None if context.is_admin else context.project_id)
    for key in sorted(named - own):
        raise exception.NoSuchObject(kind='vims', key=key[:64])


def _vims(body):
    """Return the ids of VIMs that a body names, each once."""
    named, waiting = set(), [body]
    while waiting:
        found = waiting.pop()
        if isinstance(found, dict):
            for key, value in found.items():
                if _VIM_ID.match(key):
                    _add_vim(named, value)
                elif key not in _FREE:
                    waiting.append(value)
        elif isinstance(found, list):
            waiting.extend(found)
    return named


def _add_vim(named, value):
    if not (isinstance(value, str) and uuidutils.is_uuid_like(value)):
        raise exception.NoSuchObject(kind='vims', key=str(value)[:64])
    named.add(value)
    if len(named) > MAX_VIMS:
        raise exception.RequestRefused(
            reason='vimId: more than %d different VIMs, the limit is %d'
            % (MAX_VIMS, MAX_VIMS))


@db_api.context_manager.reader
def _own_vims(context, named, project_id):
    return {row.id for row in _query(context, nfvo_db.Vim, project_id).filter(
        nfvo_db.Vim.id.in_(named))}
