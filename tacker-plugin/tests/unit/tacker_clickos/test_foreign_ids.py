# SPDX-License-Identifier: Apache-2.0
"""A foreign id in every route of Tacker that the filter serves.

The routes are those of the filter's own table, and the rows are Tacker's in
SQLite. A route with an id of an unknown kind is an error.
"""

import datetime

from oslo_utils import uuidutils
from tacker import context as tacker_context
from tacker.db import api as db_api
from tacker.db.db_sqlalchemy import models
from tacker.db.nfvo import nfvo_db
import webob
import webob.dec

from tacker_clickos import api_filter
from tacker_clickos import owned
from tacker_clickos import routes
from tests.unit.tacker_clickos import base
from tests.unit.tacker_clickos import database

OWN, OTHER = 't', 'other'
_NOW = datetime.datetime(2026, 1, 1)
#: Values of the columns that a row must have.
_COLUMNS = {
    'vims': {'type': 'openstack', 'deleted_at': datetime.datetime.min},
    'vnf_packages': {
        'onboarding_state': 'ONBOARDED', 'operational_state': 'ENABLED',
        'usage_state': 'NOT_IN_USE', 'algorithm': 'x', 'hash': 'x',
        'location_glance_store': 'x', 'size': 1},
    'vnf_instances': {
        'vnf_instance_name': 'n', 'instantiation_state': 'INSTANTIATED',
        'vnfd_id': 'd', 'vnf_provider': 'p', 'vnf_product_name': 'n',
        'vnf_pkg_id': base.VIM_ID, 'vnf_software_version': '1',
        'vnfd_version': '1', 'vim_connection_info': []},
    'vnf_lcm_op_occs': {
        'vnf_instance_id': base.VNF_ID, 'operation': 'HEAL',
        'operation_state': 'FAILED_TEMP', 'start_time': _NOW,
        'state_entered_time': _NOW, 'operation_params': '{}',
        'is_automatic_invocation': False, 'is_cancel_pending': False,
        'error_point': 1},
    'subscriptions': {'callback_uri': 'http://a'}}
#: Bodies that name a VIM, as Tacker spells its key and as it reads it.
_VIM_BODIES = (
    lambda key: {'vimConnectionInfo': [{'id': 'a', 'vimId': key}]},
    lambda key: {'vim_connection_info': [{'id': 'a', 'vim_id': key}]},
    lambda key: {'vimConnectionInfo': {'a': {'vimId': key}}})


def with_ids():
    """Give (API, method, path) of each route that has an id."""
    for api, found in routes.APIS.items():
        for path, allowed in found:
            if '{}' in path:
                for method in allowed.split():
                    yield api, method, path


class ForeignIdsTest(database.DatabaseTestCase):

    def setUp(self):
        super().setUp()
        self.ids = {kind: {project: self.insert(kind, project)
                           for project in (OWN, OTHER)}
                    for kind in owned.TABLES}
        self.reached = []
        self.allow = self.patch(api_filter.policy, 'require')

    def insert(self, kind, project):
        """Make a row; return its id."""
        key = uuidutils.generate_uuid()
        named = {'name': key} if kind == 'vims' else {}
        _insert(self.context, owned.TABLES[kind](
            id=key, tenant_id=project, **named, **_COLUMNS[kind]))
        return key

    def send(self, api, method, path, body=None, is_admin=False):
        """Send a request through the filter; return its answer."""
        self.reached.clear()
        request = webob.Request.blank(path, method=method)
        if body is not None:
            request.json_body = body
        request.environ['tacker.context'] = tacker_context.Context(
            tenant_id=OWN, is_admin=is_admin)

        @webob.dec.wsgify
        def tacker(got):
            self.reached.append(got.path_info)
            return webob.Response()
        return request.get_response(
            api_filter.factory({}, api=api)(tacker))

    def test_every_route(self):
        found = list(with_ids())
        self.assertIn(('vims', 'DELETE', '/vims/{}'), found)
        for api, method, path in found:
            with self.subTest(f'{method} {path}'):
                self.walk(api, method, path)

    def walk(self, api, method, path):
        """Try ids of another project, of other kinds, and the own one."""
        kind = path.split('/')[1]
        own = self.ids[kind][OWN]    # an unknown kind is an error
        wrong = [self.ids[kind][OTHER], uuidutils.generate_uuid(), 'x',
                 *(ids[OWN] for other, ids in self.ids.items()
                   if other != kind)]
        for key in wrong:
            filled = self.path(path, key)
            self.assertEqual(404, self.send(api, method, filled).status_int,
                             filled)
            self.assertEqual([], self.reached)
        filled = self.path(path, own)
        self.assertEqual(200, self.send(api, method, filled).status_int)
        self.assertEqual([filled], self.reached)

    @staticmethod
    def path(path, key):
        return path.replace('{}', key).replace('{...}', 'a/b')

    def test_a_vim_in_a_body(self):
        own = self.ids['vnf_instances'][OWN]
        vims = self.ids['vims']
        for api, method, path in with_ids():
            if api != 'lifecycle' or method not in ('POST', 'PATCH'):
                continue
            filled = self.path(path, self.ids[path.split('/')[1]][OWN])
            for body in _VIM_BODIES:
                for wrong in (vims[OTHER], own, 'x', 7, None):
                    answer = self.send(api, method, filled, body(wrong))
                    self.assertEqual(404, answer.status_int, (filled, wrong))
                    self.assertEqual([], self.reached)
                answer = self.send(api, method, filled, body(vims[OWN]))
                # A VNF keeps its VIM.
                keeps = method == 'PATCH' and 'vimConnectionInfo' in body('')
                self.assertEqual(400 if keeps else 200, answer.status_int)

    def test_vims_of_a_body_are_distinct_and_few(self):
        path = f"/vnf_instances/{self.ids['vnf_instances'][OWN]}/heal"
        own = self.ids['vims'][OWN]
        look = self.patch(owned, '_own_vims', return_value={own})

        def send(*keys):
            look.reset_mock()
            answer = self.send('lifecycle', 'POST', path, {
                'x': [{'vimId': key} for key in keys]})
            return answer.status_int, look.call_count
        self.assertEqual((200, 1), send(*[own] * 32000))
        many = [uuidutils.generate_uuid() for _ in range(owned.MAX_VIMS)]
        self.assertEqual((404, 1), send(*many))
        self.assertEqual((400, 0), send(own, *many))

    def test_a_package_of_a_new_vnf(self):
        for project, package in self.ids['vnf_packages'].items():
            _insert(self.context, models.VnfPackageVnfd(
                id=uuidutils.generate_uuid(), package_uuid=package,
                vnfd_id=project, vnf_provider='p', vnf_product_name='n',
                vnf_software_version='1', vnfd_version='1'))

        def create(vnfd_id, **options):
            return self.send('lifecycle', 'POST', '/vnf_instances',
                             {'vnfdId': vnfd_id}, **options).status_int
        for wrong in (OTHER, 'x', 7, None, [OWN], 'x' * 70000):
            self.assertEqual(404, create(wrong))
            self.assertEqual([], self.reached)
        self.assertEqual(200, create(OWN))
        self.assertEqual(200, create(OTHER, is_admin=True))
        self.change(models.VnfPackageVnfd, deleted=1)
        self.assertEqual(404, create(OWN))

    def test_a_shared_vim_and_an_admin(self):
        other = self.ids['vims'][OTHER]
        self.assertEqual(200, self.send('vims', 'GET', f'/vims/{other}',
                                        is_admin=True).status_int)
        self.change(nfvo_db.Vim, shared=True)
        self.assertEqual(200, self.send(
            'vims', 'GET', f'/vims/{other}.json').status_int)

    def test_text_of_a_tenant_names_no_vim(self):
        self.assertEqual(200, self.send(
            'lifecycle', 'PATCH',
            f'/vnf_instances/{self.ids["vnf_instances"][OWN]}',
            {'metadata': {'vimId': 'note'}}).status_int)

    def test_every_table_has_routes(self):
        self.assertEqual(set(owned.TABLES), {
            path.split('/')[1] for _api, _method, path in with_ids()})


@db_api.context_manager.writer
def _insert(context, row):
    context.session.add(row)
    if isinstance(row, models.VnfLcmOpOccs):
        row.created_at = _NOW
