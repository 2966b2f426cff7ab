# SPDX-License-Identifier: Apache-2.0
"""VNFD ids of projects, with Tacker's conductor and objects on SQLite."""

import io
import json
import pathlib
import shutil
import tempfile
from unittest import mock

from oslo_config import cfg
from oslo_utils import uuidutils
from tacker.common import csar_utils
from tacker import context as tacker_context
from tacker.db import api as db_api
from tacker.db.db_sqlalchemy import models
from tacker.db.vnfm import vnfm_db
from tacker import objects
from tacker.vnflcm import utils as vnflcm_utils
import webob

from tacker_clickos import api_filter
from tacker_clickos import driver
from tacker_clickos import exception
from tacker_clickos import onboarding
from tacker_clickos import vnfd_ids
from tacker_clickos import vnfds
from tests.unit.tacker_clickos import base
from tests.unit.tacker_clickos.conductor import conductor_server
from tests.unit.tacker_clickos import database
from tests.unit.tacker_clickos import test_package

A, B = 'a' * 32, 'b' * 32


class VnfdTestCase(database.DatabaseTestCase):
    """With a filter, Tacker's controllers and a conductor."""

    def setUp(self):
        super().setUp()
        folder = pathlib.Path(tempfile.mkdtemp(prefix='clickos-'))
        self.addCleanup(shutil.rmtree, folder)
        self.folder = folder
        cfg.CONF.set_override('vnf_package_csar_path', str(folder),
                              'vnf_package')
        self.addCleanup(cfg.CONF.clear_override, 'vnf_package_csar_path',
                        'vnf_package')
        self.addCleanup(setattr, csar_utils, 'load_csar_data',
                        csar_utils.load_csar_data)
        onboarding.install()
        self.csar = test_package.csar(test_package.files())
        (self.vnfd,) = self.ids_in(self.csar)

    @staticmethod
    def ids_in(csar):
        vnfd = test_package.archive.read(io.BytesIO(csar))
        lines = [line for content in vnfd.values() if content
                 for line in content.decode().splitlines()
                 if 'descriptor_id:' in line and '-' in line]
        return {line.split()[-1].strip('"\'') for line in lines}

    def of(self, project_id, is_admin=False):
        context = tacker_context.Context(
            user_id='u', tenant_id=project_id, is_admin=is_admin,
            roles=['admin' if is_admin else 'member'])
        context.can = mock.Mock(spec_set=())
        return context

    def send(self, project_id, method, path, body=None, api='lifecycle',
             is_admin=False):
        """Send a request through the filter to Tacker's controllers."""
        request = webob.Request.blank(path, method=method)
        if body is not None:
            request.body = json.dumps(body).encode()
        request.environ['tacker.context'] = self.of(project_id, is_admin)
        self.reached = None
        return request.get_response(
            api_filter.factory({}, api=api)(self.tacker))

    def tacker(self, environ, start_response):
        """Stand for Tacker's API."""
        self.reached = webob.Request(environ)
        return webob.Response(body=self.reached.body)(environ,
                                                      start_response)

    def onboard(self, project_id, csar=None):
        """On-board a package as Tacker does; return its id."""
        package_id = uuidutils.generate_uuid()
        context = self.of(project_id)
        _insert_package(self.context, package_id, project_id)
        path = self.folder / f'{package_id}.zip'
        path.write_bytes(csar or self.csar)
        vnfds.release(project_id, self.vnfd)
        read = csar_utils.load_csar_data(context.elevated(), package_id,
                                         str(path))
        conductor = conductor_server.Conductor.__new__(
            conductor_server.Conductor)
        conductor._onboard_vnf_package(
            context, objects.VnfPackage.get_by_id(self.context, package_id),
            *read)
        return package_id

    def make(self, project_id):
        """Make a VNF as Tacker's API does, of the package of a project."""
        body = {'vnfdId': self.vnfd, 'vnfInstanceName': 'fw'}
        context = self.of(project_id)
        vnfd_ids.take(context, body)
        vnfd = objects.VnfPackageVnfd.get_by_id(context, body['vnfdId'])
        vnf = objects.VnfInstance(
            context=context, vnf_instance_name=body['vnfInstanceName'],
            vnfd_id=body['vnfdId'], instantiation_state='NOT_INSTANTIATED',
            vnf_provider=vnfd.vnf_provider,
            vnf_product_name=vnfd.vnf_product_name,
            vnf_software_version=vnfd.vnf_software_version,
            vnfd_version=vnfd.vnfd_version, vnf_pkg_id=vnfd.package_uuid,
            tenant_id=project_id, vnf_metadata={})
        vnf.create()
        return objects.VnfInstance.get_by_id(context, vnf.id)

    def instantiate(self, project_id, vnf):
        """Instantiate a VNF by the driver that Tacker loads."""
        context, request = self.of(project_id), base.instantiate_request(
            {'rules': ['allow icmp']})
        info = base.vnf_instance().instantiated_vnf_info
        info.vnf_instance_id = vnf.id
        info.additional_params = request.additional_params
        info.ext_virtual_link_info = []
        vnf.instantiated_vnf_info = info
        vnf.vim_connection_info = [base.vim_connection()]
        vnf.save()
        driver.InfraDriver().instantiate_vnf(
            context=context, vnf_instance=vnf, vnfd_dict={},
            vim_connection_info=base.vim_connection(),
            instantiate_vnf_req=request, grant_response={}, plugin=None,
            vnf_package_path=vnflcm_utils.get_vnf_package_path(
                context, vnf.vnfd_id))
        vnf.instantiation_state = 'INSTANTIATED'
        vnf.save()

    def terminate(self, project_id, vnf):
        """Terminate and delete it."""
        driver.InfraDriver().delete(
            plugin=None, context=self.of(project_id), vnf_id='x',
            auth_attr=dict(base.ACCESS), vnf_instance=vnf,
            terminate_vnf_req=mock.sentinel.request)
        vnf.instantiation_state = 'NOT_INSTANTIATED'
        vnf.save()
        vnf.destroy(self.of(project_id))

    def guests(self):
        """Return the VNFs of the servers that there are."""
        return {server.metadata['clickos_vnf']
                for server in self.cloud.servers.values()}

    def delete(self, project_id, package_id):
        """Delete a package by Tacker's own steps."""
        context = self.of(project_id)
        package = objects.VnfPackage.get_by_id(
            context, package_id, expected_attrs=[models.VnfPackage.vnfd])
        objects.vnfd_attribute.VnfdAttribute(context).delete(
            package.vnfd.vnfd_id)
        objects.vnfd.Vnfd(context).delete(package.vnfd.vnfd_id)
        package.destroy(context)


class TwoProjectsTest(VnfdTestCase):

    def test_both_have_the_package_of_a_vendor(self):
        packages = {project: self.onboard(project) for project in (A, B)}
        vnfs = {project: self.make(project) for project in (A, B)}
        for project, vnf in vnfs.items():
            self.assertEqual(packages[project], vnf.vnf_pkg_id)
            for context in (self.of(project), self.of(project, True)):
                self.assertEqual(
                    str(self.folder / packages[project]),
                    vnflcm_utils.get_vnf_package_path(context, vnf.vnfd_id))
            self.assertTrue(vnfds.is_ours(vnf.id))
            self.instantiate(project, vnf)
        self.assertEqual({vnfs[A].id, vnfs[B].id}, self.guests())
        self.terminate(A, vnfs[A])
        self.assertEqual({vnfs[B].id}, self.guests())
        self.delete(A, packages[A])
        # The other project's VNF is as before.
        vnf = vnfs[B]
        self.assertEqual(
            str(self.folder / packages[B]),
            vnflcm_utils.get_vnf_package_path(self.of(B), vnf.vnfd_id))
        self.assertEqual({vnf.vnfd_id}, _legacy_ids(self.context))
        self.assertRaises(exception.NoSuchObject, vnfds.find, self.of(A),
                          self.vnfd)
        self.terminate(B, vnf)
        self.assertEqual(set(), self.guests())
        self.delete(B, packages[B])
        self.onboard(A)
        self.make(A)

    def test_an_id_names_one_package_of_a_project(self):
        package = self.onboard(A)
        with self.assertRaises(exception.VnfdInUse) as refused:
            vnfds.release(A, self.vnfd)
        self.assertIn(package, str(refused.exception))
        vnfds.release(B, self.vnfd)

    def test_no_project_reserves_ids(self):
        """Whatever a project on-boards, another one can do so as well."""
        self.onboard(B)
        taken = vnfds.key(A, self.vnfd)
        self.assertNotEqual(taken, vnfds.key(B, self.vnfd))
        # An id that is the other's key leads to a key of its own.
        self.assertNotEqual(taken, vnfds.key(B, taken))
        self.onboard(A)
        self.assertEqual(taken, vnfds.find(self.of(A), self.vnfd))

    def test_a_foreign_vnfd(self):
        self.onboard(A)
        stored = vnfds.find(self.of(A), self.vnfd)
        for wrong in (self.vnfd, stored, 'x', 7, None, [self.vnfd],
                      'x' * 70000):
            with self.assertRaises(exception.NoSuchObject):
                vnfds.find(self.of(B), wrong)
        self.assertEqual(stored, vnfds.find(self.of(B, True), self.vnfd))
        self.onboard('c' * 32)
        with self.assertRaisesRegex(exception.RequestRefused, 'several'):
            vnfds.find(self.of(B, True), self.vnfd)
        self.onboard(B)
        self.assertEqual(vnfds.key(B, self.vnfd),
                         vnfds.find(self.of(B, True), self.vnfd))

    def test_a_package_of_an_earlier_release(self):
        csar_utils.load_csar_data = onboarding._read
        package = self.onboard(A)
        self.assertEqual(self.vnfd, vnfds.find(self.of(A), self.vnfd))
        self.assertRaises(exception.VnfdInUse, vnfds.release, A, self.vnfd)
        csar_utils.load_csar_data = onboarding._load
        other = self.onboard(B)
        self.assertEqual(
            [package, other],
            [self.make(project).vnf_pkg_id for project in (A, B)])
        self.assertEqual({}, vnfds.descriptor_ids(self.of(A), [self.vnfd]))


class NamesTest(VnfdTestCase):

    def test_a_new_vnf(self):
        self.onboard(A)
        answer = self.send(A, 'POST', '/vnf_instances', {'vnfdId': self.vnfd})
        self.assertEqual(200, answer.status_int, answer.body)
        self.assertEqual({'vnfdId': vnfds.key(A, self.vnfd)},
                         json.loads(self.reached.body))
        answer = self.send(B, 'POST', '/vnf_instances', {'vnfdId': self.vnfd})
        self.assertEqual(404, answer.status_int)
        self.assertIsNone(self.reached)

    def test_subscriptions(self):
        self.onboard(A)
        body = {'filter': {'vnfInstanceSubscriptionFilter': {
            'vnfdIds': [self.vnfd]}}, 'callbackUri': base.ACCESS['auth_url']}
        self.send(A, 'POST', '/subscriptions', body)
        got = json.loads(self.reached.body)['filter']
        self.assertEqual([vnfds.key(A, self.vnfd)],
                         got['vnfInstanceSubscriptionFilter']['vnfdIds'])
        answer = self.send(B, 'POST', '/subscriptions', body)
        self.assertEqual(404, answer.status_int)
        body['filter']['vnfInstanceSubscriptionFilter']['vnfdIds'] *= 33
        answer = self.send(A, 'POST', '/subscriptions', body)
        self.assertEqual(400, answer.status_int)
        self.assertIn('33 ids, the limit is 32', answer.json['detail'])

    def test_queries(self):
        self.onboard(A)
        path = '/vnf_packages?filter=(eq,vnfdId,%s)' % self.vnfd
        self.send(A, 'GET', path, api='packages')
        self.assertIn(vnfds.key(A, self.vnfd), self.reached.query_string)
        self.send(B, 'GET', path, api='packages')
        self.assertIn(self.vnfd, self.reached.query_string)

    def answer(self, body, project_id=A, is_admin=False):
        response = webob.Response(content_type='application/json')
        response.body = body
        return vnfd_ids.give(self.of(project_id, is_admin), response).body

    def test_answers(self):
        self.onboard(A)
        stored, other = vnfds.key(A, self.vnfd), uuidutils.generate_uuid()
        text = json.dumps('"vnfdId": "%s"' % stored)
        for given, wanted in (
                ('{"vnfdId": "%s"}' % stored, '{"vnfdId": "%s"}' % self.vnfd),
                ('{"vnfdId":"%s"}' % stored.upper(),
                 '{"vnfdId":"%s"}' % self.vnfd),
                ('{"vnfdIds": ["%s", "%s"]}' % (other, stored),
                 '{"vnfdIds": ["%s", "%s"]}' % (other, self.vnfd)),
                ('{"vnfdId": "%s"}' % other, None), (text, None),
                ('{"vnfdId": 7, "vnfdIds": []}', None), ('{}', None)):
            self.assertEqual((wanted or given).encode(),
                             self.answer(given.encode()))

    def test_answers_do_not_tell_of_vnfds_of_others(self):
        self.onboard(A)
        guess = b'{"userDefinedData": {"vnfdId": "%s"}}' % vnfds.key(
            A, self.vnfd).encode()
        self.assertEqual(guess, self.answer(guess, B))
        for whose in ((A,), (B, True)):
            self.assertIn(self.vnfd.encode(), self.answer(guess, *whose))

    def test_bytes_of_a_package_stay(self):
        self.onboard(A)
        body = b'"vnfdId": "%s"' % vnfds.key(A, self.vnfd).encode()
        response = webob.Response(body, content_type='application/zip')
        self.assertEqual(body, vnfd_ids.give(self.of(A), response).body)


@db_api.context_manager.writer
def _insert_package(context, package_id, project_id):
    context.session.add(models.VnfPackage(
        id=package_id, onboarding_state='ONBOARDED', tenant_id=project_id,
        operational_state='ENABLED', usage_state='NOT_IN_USE', algorithm='x',
        hash='x', location_glance_store='x', size=1))


@db_api.context_manager.reader
def _legacy_ids(context):
    return {each.id for each in context.session.query(vnfm_db.VNFD)}
