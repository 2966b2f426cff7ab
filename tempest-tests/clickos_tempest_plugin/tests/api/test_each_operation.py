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
from clickos_tempest_plugin.common import waiters
from clickos_tempest_plugin.services import tacker
from clickos_tempest_plugin.tests import base

CONF = config.CONF

SUBSCRIPTIONS = 'vnflcm/v1/subscriptions'
#: A property outside its constraint.
NO_RULES = []


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
        resp, body = self.tacker.raw_request(
            f'{self.tacker.base_url}/{url}', 'GET', headers={
                'X-Auth-Token': self.tacker.token, 'Accept': accept})
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
            failed = self.tenant.instantiate(vnf_id, NO_RULES)
            self.assertEqual('FAILED_TEMP', failed['operationState'])
            url = f'{tacker.OPERATIONS}/{failed["id"]}'
            self.assertRaises(exceptions.Conflict, self.tacker.call, 'POST',
                              f'{url}/cancel', 202,
                              {'cancelMode': 'FORCEFUL'})
            self.retry(url)
            self.tacker.call('POST', f'{url}/{end}', [200, 202])
            waiters.until(lambda url=url: self.get(url)['operationState'],
                          lambda seen, state=state: seen == state,
                          f'operation {state}', CONF.clickos.lcm_timeout)
        self.assertNothingLeft(vnf_id)
        operations = self.tacker.list_operations(vnf_id)
        self.assertEqual({'ROLLED_BACK', 'FAILED'}, {
            each['operationState'] for each in operations})

    def retry(self, url):
        """Retry an operation, which fails again."""
        before = self.get(url)['stateEnteredTime']
        self.tacker.call('POST', f'{url}/retry', 202)
        waiters.until(
            lambda: self.get(url),
            lambda seen: (seen['operationState'] == 'FAILED_TEMP'
                          and seen['stateEnteredTime'] != before),
            'the operation failed again', CONF.clickos.lcm_timeout)

    @decorators.attr(type='gate')
    @decorators.idempotent_id('6d0b2cc1-6c8f-4a0e-b9a0-51f7a85f3d23')
    def test_of_subscriptions_and_vims(self):
        made = self.tacker.call('POST', SUBSCRIPTIONS, 201, {
            'callbackUri': CONF.identity.uri_v3})[1]
        url = f'{SUBSCRIPTIONS}/{made["id"]}'
        self.assertEqual(made['id'], self.get(url)['id'])
        self.assertIn(made['id'], [each['id'] for each in
                                   self.get(SUBSCRIPTIONS)])
        self.tacker.call('DELETE', url, 204)
        self.assertRaises(exceptions.NotFound, self.get, url)
        url = f'v1.0/vims/{self.tenant.vim_id}'
        name = data_utils.rand_name('renamed')
        self.tacker.call('PUT', url, 200, {'vim': {'name': name}})
        self.assertEqual(name, self.get(url)['vim']['name'])
        self.assertIn(name, [each['name'] for each in
                             self.get('v1.0/vims')['vims']])
