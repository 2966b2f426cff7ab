# SPDX-License-Identifier: Apache-2.0
"""Each operation of Tacker that is served, once.

The life cycle of a VNF without a failure is in the scenarios.
"""

import io
import zipfile

from tempest import config
from tempest.lib.common.utils import data_utils
from tempest.lib import decorators
from tempest.lib import exceptions

from clickos_tempest_plugin.common import csar
from clickos_tempest_plugin.common import tenant
from clickos_tempest_plugin.common import waiters
from clickos_tempest_plugin.services import tacker
from clickos_tempest_plugin.tests import base

CONF = config.CONF

SUBSCRIPTIONS = 'vnflcm/v1/subscriptions'
#: A property outside its constraint.
#: Each word is one of a rule, and only the guest finds that it is not valid.
BAD_RULES = ['allow src']
RULES = ['allow icmp', 'deny all']


class EachOperationTest(base.ClickOSTest):
    """One package for all tests."""

    @classmethod
    def resource_setup(cls):
        super().resource_setup()
        cls.package = csar.firewall()
        cls.vnfd_id = cls.tenant.onboard(cls.package,
                                         cls.addClassResourceCleanup)
        cls.tacker = cls.tenant.tacker

    def get(self, url):
        """Return the answer to a GET."""
        return self.tacker.call('GET', url, 200)[1]

    def raw(self, url, accept):
        """Return the bytes of the answer to a GET."""
        resp, body = self.tacker.request('GET', url,
                                         headers={'Accept': accept})
        self.assertEqual(200, resp.status, url)
        return body

    @decorators.attr(type='gate')
    @decorators.idempotent_id('6d0b2cc1-6c8f-4a0e-b9a0-51f7a85f3d21')
    def test_of_packages(self):
        package, = (each for each in self.get(tacker.PACKAGES)
                    if each.get('vnfdId') == self.vnfd_id)
        url = f'{tacker.PACKAGES}/{package["id"]}'
        self.assertEqual(package['vnfdId'], self.get(url)['vnfdId'])
        self.assertEqual(self.package, self.raw(
            f'{url}/package_content', 'application/zip'))
        files = zipfile.ZipFile(io.BytesIO(self.raw(
            f'{url}/vnfd', 'application/zip')))
        self.assertIn(csar.VNFD, files.namelist())
        with zipfile.ZipFile(io.BytesIO(self.package)) as sent:
            self.assertEqual(sent.read(csar.CLICK), self.raw(
                f'{url}/artifacts/{csar.CLICK}',
                'application/octet-stream'))

    @decorators.attr(type='gate')
    @decorators.idempotent_id('6d0b2cc1-6c8f-4a0e-b9a0-51f7a85f3d22')
    def test_of_failed_operations(self):
        self.assertIn('apiVersions', self.get('vnflcm/v1/api_versions'))
        vnf_id = self.tenant.create_vnf(self.vnfd_id, self.addCleanup)
        self.assertIn(vnf_id, [each['id'] for each in
                               self.get(tacker.INSTANCES)])
        for end, state in (('rollback', 'ROLLED_BACK'), ('fail', 'FAILED')):
            failed = self.tenant.instantiate(vnf_id, BAD_RULES)
            self.assertEqual('FAILED_TEMP', failed['operationState'])
            url = f'{tacker.OPERATIONS}/{failed["id"]}'
            self.assertRaises(exceptions.Conflict, self.tacker.call, 'POST',
                              f'{url}/cancel', 202,
                              {'cancelMode': 'FORCEFUL'})
            self.tacker.call('POST', f'{url}/{end}', [200, 202])
            waiters.until(lambda url=url: self.get(url)['operationState'],
                          lambda seen, state=state: seen == state,
                          f'operation {state}', CONF.clickos.lcm_timeout)
        self.assertNothingLeft(vnf_id)
        operations = self.tacker.list_operations(vnf_id)
        self.assertEqual({'ROLLED_BACK', 'FAILED'}, {
            each['operationState'] for each in operations})

    @decorators.attr(type='gate')
    @decorators.idempotent_id('6d0b2cc1-6c8f-4a0e-b9a0-51f7a85f3d24')
    def test_of_a_retry(self):
        """It succeeds once the address of the VNF is free."""
        taken = self.tenant.make_port('left', self.addCleanup, fixed_ips=[
            {'subnet_id': self.tenant.networks['left'].subnet_id,
             'ip_address': tenant.FIREWALL['left']}])
        vnf_id = self.tenant.create_vnf(self.vnfd_id, self.addCleanup)
        failed = self.tenant.instantiate(vnf_id, RULES)
        self.assertEqual('FAILED_TEMP', failed['operationState'])
        self.assertIn(tenant.FIREWALL['left'], failed['error']['detail'])
        self.assertNothingLeft(vnf_id)
        self.os_primary.ports_client.delete_port(taken['id'])
        tenant.completed(self.tenant.retry(vnf_id))
        self.assertEqual(', '.join(RULES), self.tenant.clickos.read_handler(
            vnf_id, 'fw.config', 'vnfs'))

    @decorators.attr(type='gate')
    @decorators.idempotent_id('6d0b2cc1-6c8f-4a0e-b9a0-51f7a85f3d23')
    def test_of_subscriptions_and_vims(self):
        """Tacker notifies only a URL that the operator lists."""
        refused = self.assertRaises(
            exceptions.BadRequest, self.tacker.call, 'POST', SUBSCRIPTIONS,
            201, {'callbackUri': 'http://127.0.0.1:9/'})
        self.assertIn('allowed_urls', str(refused))
        self.assertEqual([], self.get(SUBSCRIPTIONS))
        url = f'{SUBSCRIPTIONS}/{data_utils.rand_uuid()}'
        for method, status in (('GET', 200), ('DELETE', 204)):
            self.assertRaises(exceptions.NotFound, self.tacker.call, method,
                              url, status)
        url = f'v1.0/vims/{self.tenant.vim_id}'
        name = data_utils.rand_name('renamed')
        self.tacker.call('PUT', url, 200, {'vim': {'name': name}})
        self.assertEqual(name, self.get(url)['vim']['name'])
        self.assertIn(name, [each['name'] for each in
                             self.get('v1.0/vims')['vims']])
