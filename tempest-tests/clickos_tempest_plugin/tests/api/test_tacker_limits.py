# SPDX-License-Identifier: Apache-2.0
"""What an ordinary member cannot make Tacker do."""

from concurrent import futures
import stat
import time
import zipfile

from tempest import config
from tempest.lib import decorators
from tempest.lib import exceptions

from clickos_tempest_plugin.common import csar
from clickos_tempest_plugin.common import waiters
from clickos_tempest_plugin.services import tacker
from clickos_tempest_plugin.tests import base

CONF = config.CONF

ZIP = {'Content-Type': 'application/zip'}
FOREIGN = ('http://127.0.0.1:22/v3', 'http://169.254.169.254/v3',
           'http://[::1]/v3', 'http://[::ffff:127.0.0.1]/v3',
           'http://2130706433/v3', 'http://0x7f.1/v3', 'http://localhost/v3',
           'http://example.org/v3', 'file:///etc/passwd', 'gopher://x/v3')


#: Classes that double the elements 30 times: click-check works on these few
#: lines until its limit.
SLOW = 'elementclass C0 { input -> Counter -> output }\n' + ''.join(
    f'elementclass C{n} {{ input -> C{n - 1} -> C{n - 1} -> output }}\n'
    for n in range(1, 31)) + 'Idle -> C30 -> Discard;\n'
#: Of another project, while Tacker reads such texts.
MAX_OTHER_S = 10


class RoutesTest(base.ClickOSTest):
    """APIs that run scripts of members, or know no projects, are gone."""

    def assertNone(self, *paths):
        """Check that there is nothing under these paths."""
        for path in paths:
            for method in ('GET', 'POST'):
                caught = self.assertRaises(
                    exceptions.NotFound, self.tenant.tacker.request, method,
                    path, body='{}' if method == 'POST' else None)
                self.assertEqual(404, caught.resp.status, (method, path))

    @decorators.idempotent_id('6d0b2cc1-6c8f-4a0e-b9a0-51f7a85f3d01')
    def test_life_cycle_management_v2(self):
        self.assertNone(*(
            'vnflcm/v2' + path for path in (
                '', '/', '/vnf_instances', '/vnf_instances/x',
                '/vnf_instances/x/instantiate', '/subscriptions',
                '/vnf_lcm_op_occs', '/vnf_lcm_op_occs/x/fail',
                '/api_versions')))

    @decorators.idempotent_id('6d0b2cc1-6c8f-4a0e-b9a0-51f7a85f3d02')
    def test_other_spellings_of_it(self):
        self.assertNone(
            '/vnflcm/v2/vnf_instances', 'vnflcm//v2/vnf_instances',
            'VNFLCM/v2/vnf_instances', 'vnflcm/V2/vnf_instances',
            'vnflcm%2fv2/vnf_instances', 'vnflcm/%76%32/vnf_instances',
            'vnflcm/v1/%2e%2e/v2/vnf_instances', 'vnflcm/v2;/vnf_instances',
            'vnflcm', 'vnflcm/', 'vnflcm/api_versions')

    @decorators.idempotent_id('6d0b2cc1-6c8f-4a0e-b9a0-51f7a85f3d03')
    def test_faults_performance_alerts_and_notifications(self):
        self.assertNone(
            'vnffm/v1/alarms', 'vnffm/v1/subscriptions', 'vnfpm/v2/pm_jobs',
            'vnfpm/v2/thresholds', 'alert', 'alert/', 'alert/auto_scaling',
            'alert/auto_healing', '//alert', 'Alert', 'pm_event',
            'pm_threshold', 'pm_event/', 'server_notification',
            'server_notification/vnf_instances/x/servers/y/notify')

    @decorators.idempotent_id('6d0b2cc1-6c8f-4a0e-b9a0-51f7a85f3d04')
    def test_what_else_the_old_apis_have(self):
        self.assertNone(
            'v1.0', 'v1.0/extensions', 'v1.0/vnfs', 'v1.0/vnfds',
            tacker.PACKAGES + '/x/package_content/upload_from_uri',
            tacker.INSTANCES + '/x/change_vnfpkg')

    @decorators.idempotent_id('6d0b2cc1-6c8f-4a0e-b9a0-51f7a85f3d05')
    def test_a_query_does_not_change_the_method(self):
        self.assertRaises(
            exceptions.BadRequest, self.tenant.tacker.request, 'POST',
            tacker.INSTANCES + '/x?_method=PATCH', body='{"metadata": 1}')


class UrlsTest(base.ClickOSTest):
    """Tacker asks no URL that the operator does not list."""

    @classmethod
    def resource_setup(cls):
        super().resource_setup()
        vnfd_id = cls.tenant.onboard(csar.firewall(),
                                     cls.addClassResourceCleanup)
        cls.vnf_id = cls.tenant.create_vnf(vnfd_id,
                                           cls.addClassResourceCleanup)

    def assertNotAsked(self, call, *args, **kwargs):
        """Check that a call is refused for its URL."""
        caught = self.assertRaises(exceptions.BadRequest, call, *args,
                                   **kwargs)
        self.assertIn('allowed_urls', str(caught))

    @decorators.idempotent_id('6d0b2cc1-6c8f-4a0e-b9a0-51f7a85f3d06')
    def test_of_a_vim(self):
        for url in FOREIGN:
            self.assertNotAsked(
                self.tenant.tacker.create_vim, name='x', type='openstack',
                auth_url=url, vim_project={'name': 'x'},
                auth_cred={'username': 'x', 'password': 'x'})
            self.assertNotAsked(
                self.tenant.tacker.call, 'PUT',
                f'v1.0/vims/{self.tenant.vim_id}', 200,
                {'vim': {'auth_url': url}})

    @decorators.idempotent_id('6d0b2cc1-6c8f-4a0e-b9a0-51f7a85f3d07')
    def test_of_a_subscription(self):
        for url in FOREIGN:
            for body in (
                    {'callbackUri': url},
                    {'callbackUri': None, 'authentication': {
                        'paramsOauth2ClientCredentials': {
                            'tokenEndpoint': url}}}):
                self.assertNotAsked(
                    self.tenant.tacker.call, 'POST',
                    'vnflcm/v1/subscriptions', 201, body)

    @decorators.idempotent_id('6d0b2cc1-6c8f-4a0e-b9a0-51f7a85f3d11')
    def test_sql_in_a_subscriptions_filter(self):
        caught = self.assertRaises(
            exceptions.BadRequest, self.tenant.tacker.call, 'POST',
            'vnflcm/v1/subscriptions', 201,
            {'callbackUri': CONF.identity.uri_v3, 'filter': {
                'vnfInstanceSubscriptionFilter': {
                    'vnfInstanceNames': ["x') or 1=1 -- "]}}})
        self.assertIn('filter: ', str(caught))

    @decorators.idempotent_id('6d0b2cc1-6c8f-4a0e-b9a0-51f7a85f3d08')
    def test_of_a_vnf(self):
        for url in FOREIGN:
            for info in ({'interfaceInfo': {'endpoint': url}},
                         {'accessInfo': {'authUrl': url}}):
                info = [dict(info, id='x', vimType='openstack')]
                for action in ('instantiate', 'change_ext_conn'):
                    self.assertNotAsked(
                        self.tenant.tacker.start, self.vnf_id, action,
                        vimConnectionInfo=info)
                self.assertNotAsked(self.tenant.tacker.update_vnf, self.vnf_id,
                                    vimConnectionInfo=info)

    @decorators.idempotent_id('6d0b2cc1-6c8f-4a0e-b9a0-51f7a85f3d09')
    def test_parameters_that_name_code(self):
        caught = self.assertRaises(
            exceptions.BadRequest, self.tenant.tacker.start, self.vnf_id,
            'instantiate', flavourId='simple', additionalParams={
                'lcm-operation-user-data': 'Scripts/x.py',
                'lcm-operation-user-data-class': 'X'})
        self.assertIn('runs no script of a request', str(caught))


class PackagesTest(base.ClickOSTest):
    """Packages that reach beyond themselves are refused with a reason."""

    @classmethod
    def resource_setup(cls):
        super().resource_setup()
        cls.package_id = cls.tenant.tacker.create_package()['id']
        cls.addClassResourceCleanup(cls.tenant.tacker.delete_package,
                                    cls.package_id)

    def assertRefused(self, content, *words, headers=ZIP):
        """Check that a package is refused and leaves no trace."""
        caught = self.assertRaises(
            exceptions.BadRequest, self.tenant.tacker.call, 'PUT',
            f'{tacker.PACKAGES}/{self.package_id}/package_content', 202,
            content, headers)
        for word in words:
            self.assertIn(word, str(caught))
        self.assertEqual('CREATED', self.tenant.tacker.show_package(
            self.package_id)['onboardingState'])

    def changed(self, old, new):
        """Return the firewall with a text of its VNFD replaced."""
        return csar.firewall(vnfd=lambda text: text.replace(old, new))

    @decorators.idempotent_id('6d0b2cc1-6c8f-4a0e-b9a0-51f7a85f3d0a')
    def test_imports(self):
        for name in ('http://127.0.0.1/x.yaml', 'file:///etc/passwd',
                     '/etc/x.yaml', '../../x.yaml'):
            self.assertRefused(
                self.changed('  - clickos_types.yaml', f'  - {name}'),
                csar.VNFD, 'imports')

    @decorators.idempotent_id('6d0b2cc1-6c8f-4a0e-b9a0-51f7a85f3d0b')
    def test_artifacts(self):
        for path in ('http://127.0.0.1/x', 'file:///etc/passwd',
                     '/etc/passwd', '../../../etc/passwd'):
            self.assertRefused(
                self.changed('../Files/firewall.click', path), csar.VNFD)

    @decorators.idempotent_id('6d0b2cc1-6c8f-4a0e-b9a0-51f7a85f3d0c')
    def test_scripts(self):
        self.assertRefused(
            self.changed('modify_information_start: {implementation: '
                         'clickos_mgmt}',
                         'instantiate_start: {implementation: x.py}'),
            csar.VNFD, 'operations are implemented by clickos_mgmt only')

    @decorators.idempotent_id('6d0b2cc1-6c8f-4a0e-b9a0-51f7a85f3d0d')
    def test_yaml_that_makes_objects(self):
        self.assertRefused(
            self.changed('inputs: {}',
                         'inputs: !!python/object/apply:os.system [id]'),
            csar.VNFD, 'a tag')

    @decorators.idempotent_id('6d0b2cc1-6c8f-4a0e-b9a0-51f7a85f3d0e')
    def test_sources_in_the_manifest(self):
        for source in ('file:///etc/passwd', 'http://127.0.0.1/x',
                       '../../../etc/passwd'):
            self.assertRefused(csar.firewall(meta=lambda text: (
                f'{text}\n\nSource: {source}\nAlgorithm: SHA-256\n'
                'Hash: x\n')), csar.META)

    @decorators.idempotent_id('6d0b2cc1-6c8f-4a0e-b9a0-51f7a85f3d0f')
    def test_archives(self):
        link = zipfile.ZipInfo('Files/link')
        link.external_attr = (stat.S_IFLNK | 0o777) << 16
        for name, words in (('../x', 'a relative path'),
                            ('/etc/x', 'a relative path'),
                            (link, 'a plain file')):
            self.assertRefused(csar.firewall(more={name: 'x'}), words)
        self.assertRefused(
            csar.firewall(more={'Files/x': '\0' * (17 << 20)}),
            'when unpacked, the limit is')

    @decorators.idempotent_id('6d0b2cc1-6c8f-4a0e-b9a0-51f7a85f3d10')
    def test_json_in_the_place_of_a_package(self):
        """Tacker itself would fetch the address."""
        self.assertRefused({'address_information': 'file:///etc/passwd',
                            'user_name': None, 'password': None},
                           'not a zip archive', headers=None)


class SlowConfigurationsTest(base.ClickOSTest):
    """A tenant whose configurations take long stops no other one."""

    credentials = ['primary', 'admin', 'alt']
    uploads = 8

    @decorators.idempotent_id('6d0b2cc1-6c8f-4a0e-b9a0-51f7a85f3d12')
    def test_uploads_of_another_project_go_on(self):
        slow = self.os_alt.tacker.TackerClient()
        packages = [slow.create_package()['id']
                    for _number in range(self.uploads)]
        for key in packages:
            self.addCleanup(self._remove, slow, key)
        with futures.ThreadPoolExecutor(self.uploads) as pool:
            jobs = [pool.submit(self._status, slow, key) for key in packages]
            longest_s = 0
            while not all(job.done() for job in jobs):
                begun_s = time.monotonic()
                self.tenant.onboard(csar.firewall(), self.addCleanup)
                longest_s = max(longest_s, time.monotonic() - begun_s)
            statuses = {job.result() for job in jobs}
        # Some wait, some are refused as too many of a project, and a text
        # that the program does not finish is for the guest to judge.
        self.assertLessEqual(statuses, {202, 429})
        self.assertIn(202, statuses)
        self.assertLess(longest_s, MAX_OTHER_S)

    @staticmethod
    def _status(client, package_id):
        """Upload a slow package; return the status of the answer."""
        resp, _body = client.raw_request(
            f'{client.base_url}/{tacker.PACKAGES}/{package_id}'
            '/package_content', 'PUT',
            headers={**client.get_headers(), **ZIP,
                     'X-Auth-Token': client.token},
            body=csar.firewall(click=lambda text: f'{SLOW}{text}\n'))
        return resp.status

    @staticmethod
    def _remove(client, package_id):
        if client.show_package(package_id)['onboardingState'] != 'CREATED':
            waiters.package(client, package_id)
            client.disable_package(package_id)
        client.delete_package(package_id)
