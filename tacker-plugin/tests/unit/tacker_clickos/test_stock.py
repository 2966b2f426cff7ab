# SPDX-License-Identifier: Apache-2.0
"""VNFs of Tacker's stock driver: whose is which, and what is refused."""

import ast
import inspect
import io
import json
import pathlib
import shutil
import time
import types
from unittest import mock

from clickos_tempest_plugin.common import heat_csar
from oslo_config import cfg
from tacker.common import exceptions as tacker_exceptions
from tacker import context as tacker_context
from tacker.db import api as db_api
from tacker.db.db_sqlalchemy import models
from tacker.db.vnfm import vnfm_db
from tacker import objects
from tacker import policy as tacker_policy
from tacker.vnflcm import utils as vnflcm_utils
from tacker.vnflcm import vnflcm_driver
from tacker.vnfm.infra_drivers.openstack import openstack
from toscaparser.utils import urlutils

from tacker_clickos import api_filter
from tacker_clickos import driver
from tacker_clickos import early
from tacker_clickos import exception
from tacker_clickos import leftovers
from tacker_clickos.package import archive
from tacker_clickos.package import kind
from tacker_clickos.package import review
from tacker_clickos import policy
from tacker_clickos import stale_operations
from tacker_clickos import stock
from tacker_clickos import tacker_db
from tacker_clickos import vnfds
from tests.unit.tacker_clickos import base
from tests.unit.tacker_clickos.conductor import conductor_server
from tests.unit.tacker_clickos import database
from tests.unit.tacker_clickos import test_foreign
from tests.unit.tacker_clickos import test_package

OURS, STOCK = base.VNF_ID, '22222222-52e4-4c1e-9d33-4cf1b7a10a55'
#: A text that ends too early where YAML reads what Python prints.
_URL = 'http://10.0.0.1/x'
_ESCAPE = 'a"b\', imports: [%s]} #' % _URL


def allow(case):
    """Turn the option on for a test."""
    cfg.CONF.set_override('stock_driver', True, 'clickos')
    case.addCleanup(cfg.CONF.clear_override, 'stock_driver', 'clickos')


class StockTestCase(database.DatabaseTestCase):
    """With a VNF of ClickOS and one of the stock driver."""

    def setUp(self):
        super().setUp()
        for number, (vnf_id, vnfd_id, is_ours) in enumerate((
                (OURS, 'ours', True), (STOCK, 'stock', False))):
            self.make_vnf(vnf_id, vnfd_id=vnfd_id,
                          vnf_instance_name=f'vnf{number}')
            _insert(self.context, vnfm_db.VNFD(
                id=vnfd_id, tenant_id='t', name=vnfd_id,
                description=vnfds.note('d', is_ours)))

    def vnf(self, vnf_id):
        return objects.VnfInstance.get_by_id(self.context, vnf_id)


class WhoseTest(StockTestCase):

    def test_the_one_function(self):
        self.assertTrue(vnfds.is_ours(OURS))
        self.assertFalse(vnfds.is_ours(STOCK))
        self.assertTrue(vnfds.is_ours(base.VIM_ID))     # of an older release
        self.assertEqual((True, False), (vnfds.has_ours('ours'),
                                         vnfds.has_ours('stock')))

    def test_the_watcher_sees_ours_only(self):
        self.assertEqual([OURS], tacker_db.instantiated(self.context))

    def test_sweeps_leave_it(self):
        self.change(models.VnfInstance,
                    instantiation_state='NOT_INSTANTIATED')
        for vnf_id in (OURS, STOCK):
            self.make_operation('INSTANTIATE', 'FAILED_TEMP', 5, vnf_id)
        found = leftovers._failed(self.context)
        self.assertEqual([OURS], list(found.values()))

    def test_a_dead_operation_ends_and_nothing_is_cleaned(self):
        self.make_operation('INSTANTIATE', 'PROCESSING', 3600, STOCK)
        connect = self.patch(stale_operations.vim, 'connect')
        stale_operations._end(self.context, STOCK)
        operation = self.operation(STOCK)
        self.assertEqual('FAILED_TEMP', operation.operation_state)
        self.assertIn('delete its stack in Heat', operation.error.detail)
        self.assertFalse(connect.called)

    def test_a_vnf_keeps_its_driver(self):
        for vnf_id, stored in ((OURS, 'stock'), (STOCK, 'ours')):
            self.patch(vnfds, 'find', return_value=stored)
            with self.assertRaisesRegex(exception.RequestRefused,
                                        'another driver'):
                api_filter.package_change.take(
                    self.context, vnf_id, {'vnfdId': 'd'})
            mock.patch.stopall()

    def test_properties_of_guests_that_are_none(self):
        body = {'metadata': {'clickos_properties': {'rules': []}}}
        with self.assertRaisesRegex(exception.RequestRefused,
                                    'has no guests of ClickOS'):
            early.judge_update(self.context, f'/vnf_instances/{STOCK}', body)


class CallsTest(StockTestCase):
    """Each call of Tacker reaches the driver of its VNF."""

    def setUp(self):
        super().setUp()
        self.driver = driver.InfraDriver()
        self.seen = []
        self.driver._stock = mock.Mock(spec_set=('call',))
        self.driver._stock.call.side_effect = (
            lambda method, named: self.seen.append(('stock', method)))
        self.driver._ours = mock.Mock(spec=self.driver._ours)

    @staticmethod
    def calls():
        """Yield (method, names of arguments) of Tacker's own calls."""
        for module in (vnflcm_driver, conductor_server):
            for node in ast.walk(ast.parse(inspect.getsource(module))):
                if isinstance(node, ast.Call) and isinstance(
                        node.func, ast.Attribute) \
                        and node.func.attr == 'invoke' and 'vnf_manager' in \
                        ast.unparse(node.func.value):
                    yield (node.args[1].value,
                           [each.arg for each in node.keywords])

    def named(self, names, vnf_id):
        values = {
            'vnf_instance': types.SimpleNamespace(id=vnf_id),
            'vnf_dict': {'id': vnf_id}, 'vnf_info': {'id': vnf_id},
            'policy': {'vnf': {'id': vnf_id}}}
        return {name: values.get(name) for name in names}

    def test_each_call(self):
        found = list(self.calls())
        self.assertGreater(len(found), 25)
        for method, names in found:
            if method == 'sync_db':     # of Kubernetes alone
                continue
            for vnf_id, whose in ((OURS, 'ours'), (STOCK, 'stock')):
                self.seen.clear()
                self.driver._ours.reset_mock()
                getattr(self.driver, method)(**self.named(names, vnf_id))
                ours = [('ours', call[0]) for call
                        in self.driver._ours.method_calls]
                self.assertEqual([(whose, method)], self.seen + ours)

    def test_what_no_driver_has(self):
        self.assertFalse(hasattr(driver.InfraDriver(), 'no_such'))
        self.assertEqual('openstack', driver.InfraDriver().get_type())


class GuardTest(StockTestCase):
    """What the stock driver is asked, and what it answers."""

    def setUp(self):
        super().setUp()
        self.stock = stock.Stock()
        self.heat = mock.Mock(spec_set=openstack.OpenStack)
        self.patch(stock, '_driver', return_value=self.heat)

    def ask(self, method, **named):
        return self.stock.call(method, {
            'vnf_instance': self.vnf(STOCK),
            'vim_connection_info': base.vim_connection(), **named})

    def test_without_the_option_none_is_made_and_all_can_go(self):
        self.change(models.VnfInstance,
                    instantiation_state='NOT_INSTANTIATED')
        with self.assertRaisesRegex(exception.RequestRefused,
                                    'stock driver is off'):
            self.ask('pre_instantiation_vnf')
        self.assertFalse(self.heat.pre_instantiation_vnf.called)
        self.ask('delete', terminate_vnf_req=None)
        self.assertTrue(self.heat.delete.called)
        self.assertRaises(exception.RequestRefused, stock.judge, STOCK,
                          'instantiate', {})
        allow(self)
        self.ask('pre_instantiation_vnf', vnf_package_path='/p',
                 vnf_software_images={})
        stock.judge(STOCK, 'instantiate', {})

    def test_images_are_files_of_the_package(self):
        allow(self)
        (self.package / 'link').symlink_to('/etc/passwd')
        for path, may in (
                (self.package / 'Files/x.img', True), ('/etc/passwd', False),
                (self.package / '../x', False),
                ('http://10.0.0.1/x', False), (self.package / 'link', False)):
            image = objects.VnfSoftwareImage(name='x', image_path=str(path))
            named = {'vnf_package_path': str(self.package),
                     'vnf_software_images': {'VDU1': image}}
            if may:
                self.ask('pre_instantiation_vnf', **named)
            else:
                with self.assertRaisesRegex(exception.StockFailed,
                                            'not in the package'):
                    self.ask('pre_instantiation_vnf', **named)

    def test_a_vim_that_the_operator_does_not_list(self):
        vim = base.vim_connection()
        vim.access_info = {**base.ACCESS, 'auth_url': 'http://10.0.0.1/v3'}
        for named in ({'vim_connection_info': vim}, {
                'vim_connection_info': None, 'auth_attr': vim.access_info}):
            self.assertRaises(exception.UrlRefused, self.ask, 'delete_wait',
                              **named)
        self.assertFalse(self.heat.delete_wait.called)

    def test_no_address_reaches_the_tenant(self):
        for error, told in (
                (tacker_exceptions.VnfHealFailed(
                    id='x', error='to http://10.0.0.7:8004/v1/a: refused'),
                 'to ...'),
                (tacker_exceptions.VnfHealFailed(
                    id='x', error="HTTPPool(host='heat.internal', port=8004)"),
                 'HTTPPool(..., ...)'),
                (ConnectionError('http://10.0.0.7'), 'ConnectionError')):
            self.heat.heal_vnf.side_effect = error
            with self.assertRaises(exception.StockFailed) as failed:
                self.ask('heal_vnf')
            self.assertIn(told, str(failed.exception))
            self.assertNotRegex(str(failed.exception), '10.0|internal|8004')

    def test_a_long_reason_costs_little_work_and_log(self):
        for word in ('a', "host='"):
            self.heat.heal_vnf.side_effect = tacker_exceptions.VnfHealFailed(
                id='x', error='\n' + word * (60000 // len(word)))
            began_s = time.process_time()
            with self.assertRaises(exception.StockFailed) as failed, \
                    self.assertLogs(stock.LOG.logger) as logged:
                self.ask('heal_vnf')
            self.assertLess(time.process_time() - began_s, 2)
            self.assertLess(len(str(failed.exception)), 5000)
            self.assertLess(len(logged.output[0]), 5000)
            self.assertNotIn('\n', logged.output[0])

    def test_graceful_terminations_are_short(self):
        request = types.SimpleNamespace(graceful_termination_timeout=10 ** 9)
        self.ask('delete', terminate_vnf_req=request)
        self.assertEqual(stock.MAX_GRACE_S,
                         request.graceful_termination_timeout)
        for grace_s in (61, 1e300):
            with self.assertRaisesRegex(exception.RequestRefused,
                                        'the limit is 60'):
                stock.judge(STOCK, 'terminate',
                            {'gracefulTerminationTimeout': grace_s})
        stock.judge(STOCK, 'terminate', {'gracefulTerminationTimeout': 60})

    def test_operations_leave_threads_for_others(self):
        of_project, of_all = stock._limits()
        self.assertLess(of_all, 64)
        own, other = (tacker_context.Context(
            tenant_id=project, user_id='u', is_admin=False)
            for project in ('t', 'other'))

        def fill(left):
            """Begin an operation while others wait for Heat."""
            def heal(**_named):
                if left:
                    return fill(left - 1)
                with self.assertRaises(exception.Busy):
                    self.ask('heal_vnf', context=own)
                self.ask('delete', context=own, terminate_vnf_req=None)
                self.heat.heal_vnf.side_effect = None
                self.ask('heal_vnf', context=other)
                return None
            self.heat.heal_vnf.side_effect = heal
            self.ask('heal_vnf', context=own)
        fill(of_project - 1)
        self.heat.heal_vnf.side_effect = None
        self.ask('heal_vnf', context=own)
        self.assertEqual(0, self.stock._busy.total())


class TranslationTest(StockTestCase):
    """Tacker's own driver translates a package; Heat and Glance are fakes."""

    def setUp(self):
        super().setUp()
        allow(self)
        self.stack = {}
        client = self.patch(openstack, 'hc').HeatClient.return_value
        client.resource_attr_support.return_value = True
        client.find_stack.return_value = None
        client.create.side_effect = self.create
        self.addCleanup(stock._driver.cache_clear)

    def create(self, fields):
        self.stack.update(fields)
        return {'stack': {'id': 'stack'}}

    def lay_out(self, old='a server', new='a server', name='plain.yaml'):
        """Extract the package with a text changed."""
        shutil.rmtree(self.package)
        self.package.mkdir()
        archive.extract(io.BytesIO(heat_csar.build()), self.package)
        path = self.package / 'Definitions' / name
        text = path.read_text()
        self.assertIn(old, text)
        path.write_text(text.replace(old, new))
        self.patch(vnflcm_utils, '_get_vnf_package_path',
                   return_value=str(self.package))

    def instantiate(self, **parameters):
        request = objects.InstantiateVnfRequest(
            flavour_id='simple', additional_params=parameters,
            ext_virtual_links=[], ext_managed_virtual_links=[],
            instantiation_level_id=None)
        vnfd = vnflcm_utils.get_vnfd_dict(self.context, 'stock', 'simple')
        final = vnflcm_utils._make_final_vnf_dict(
            vnfd, STOCK, 'plain',
            vnflcm_utils._get_param_data(vnfd, request))
        final['placement_attr'] = {}
        return stock.Stock().call('instantiate_vnf', {
            'context': self.context, 'vnf_instance': self.vnf(STOCK),
            'vnfd_dict': final, 'vim_connection_info': base.vim_connection(),
            'instantiate_vnf_req': request, 'grant_response': {},
            'plugin': None, 'vnf_package_path': str(self.package)})

    def test_a_stack(self):
        self.lay_out()
        self.assertEqual('stack', self.instantiate())
        self.assertIn('OS::Nova::Server', self.stack['template'])
        self.assertEqual('plain', self.stack['stack_name'])

    def test_a_text_of_the_vnfd_adds_nothing_to_it(self):
        opened = []
        self.patch(urlutils.UrlUtils, 'validate_url',
                   side_effect=opened.append)
        self.lay_out('One server of Heat', json.dumps(_ESCAPE))
        self.instantiate()
        self.assertNotIn(_URL, opened)
        self.assertIn('OS::Nova::Server', self.stack['template'])

    def test_no_file_of_the_conductor_enters_a_template(self):
        secret = self.package / 'secret'
        secret.write_text('password')
        stock._driver()
        from tacker.tosca import utils as tosca_utils
        hot = json.dumps({'resources': {'c': {
            'type': 'OS::Heat::SoftwareConfig', 'properties': {
                'config': {'get_file': str(secret)}}}}})
        with self.assertRaisesRegex(exception.StockFailed, 'reads no file'):
            tosca_utils.post_process_heat_template(hot)


class PackageTest(test_package.PackageTestCase):
    """Which packages are on-boarded for the stock driver."""

    def test_whose_a_package_is(self):
        self.assertTrue(kind.is_ours(archive.read(io.BytesIO(
            test_package.csar(test_package.files())))))
        for package in (heat_csar.build(), test_package.csar(
                test_foreign.files('heat'))):
            self.assertFalse(kind.is_ours(archive.read(io.BytesIO(package))))

    def test_the_option(self):
        faults, vnfd_id, _texts = review.judge(heat_csar.build())
        self.assertIsNone(vnfd_id)
        self.assertIn('stock driver is off', faults[-1])
        faults, vnfd_id, texts = review.judge_any(heat_csar.build())
        self.assertEqual(([], []), (faults, texts))
        self.assertRegex(vnfd_id, '[0-9a-f-]{36}')

    def test_scripts(self):
        for name in ('UserData/lcm.py', 'x.PYC', 'lib/x.so',
                     'BaseHOT/simple/hot.yaml', 'a/BaseHOT/b.yaml'):
            package = heat_csar.build({name: b'a: b\n'})
            faults, _id, _texts = review.judge_any(package)
            self.assertIn('rule clickos:stock_scripts', faults[0])
            self.assertEqual([], review.judge_with_scripts(package)[0])

    def test_ours_brings_no_script_whoever_uploads_it(self):
        content = test_package.files()
        content[test_package.VNFD] = content[test_package.VNFD].replace(
            b'implementation: clickos_mgmt', b'implementation: other')
        faults = review.judge_with_scripts(test_package.csar(content))[0]
        self.assertIn('operations are implemented by clickos_mgmt only',
                      faults[0])

    def test_a_url_of_either_kind(self):
        package = heat_csar.build({'Definitions/x.yaml':
                                   b'imports: ["http://10.0.0.1/x"]\n'})
        for judge in (review.judge_any, review.judge_with_scripts):
            self.assertIn('Tacker fetches nothing', judge(package)[0][0])


class RuleTest(base.TestCase):
    """Who may bring a script."""

    def setUp(self):
        super().setUp()
        # Other tests of the process have registered options of services.
        self.patch(cfg.ConfigOpts, '_check_required_opts')
        cfg.CONF([], default_config_files=[])
        self.addCleanup(cfg.CONF.reset)
        tacker_policy.reset()
        self.addCleanup(tacker_policy.reset)

    def context(self, *roles):
        return tacker_context.Context(
            user_id='u', tenant_id='t', roles=list(roles),
            is_admin='admin' in roles)

    def test_administrators_by_default(self):
        self.assertFalse(policy.may_bring_scripts(self.context('member')))
        self.assertTrue(policy.may_bring_scripts(self.context('admin')))

    def test_the_operators_file(self):
        file = pathlib.Path(self.package) / 'policy.yaml'
        file.write_text('"clickos:stock_scripts": "role:vendor"\n')
        tacker_policy.init(policy_file=str(file))
        self.assertTrue(policy.may_bring_scripts(self.context('vendor')))
        self.assertFalse(policy.may_bring_scripts(self.context('admin')))

    def test_a_request_names_one(self):
        for is_on, roles, may in ((False, ['admin'], False),
                                  (True, ['member'], False),
                                  (True, ['admin'], True)):
            cfg.CONF.set_override('stock_driver', is_on, 'clickos')
            self.addCleanup(cfg.CONF.clear_override, 'stock_driver',
                            'clickos')
            request = mock.Mock(spec_set=('environ',), environ={
                'tacker.context': self.context(*roles)})
            scripts = api_filter._may_bring_scripts(request)
            self.assertEqual(may, scripts)
            raw = b'{"additionalParams": {"lcm-operation-user-data": "x"}}'
            if may:
                api_filter.request_body.parse(raw, scripts)
            else:
                self.assertRaises(exception.RequestRefused,
                                  api_filter.request_body.parse, raw, scripts)


@db_api.context_manager.writer
def _insert(context, row):
    context.session.add(row)
