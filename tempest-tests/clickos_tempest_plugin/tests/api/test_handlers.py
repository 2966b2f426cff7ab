# SPDX-License-Identifier: Apache-2.0
"""Handlers of a running firewall, through clickos-api."""

import concurrent.futures

from tempest import config
from tempest.lib import auth
from tempest.lib import decorators
from tempest.lib import exceptions

from clickos_tempest_plugin.common import csar
from clickos_tempest_plugin.tests import base

CONF = config.CONF

RULES = ['allow icmp', 'deny all']
WRITERS = 6


class HandlersTest(base.ClickOSTest):
    """One firewall for all; each test leaves it with some rules."""

    credentials = ['primary', 'admin', 'alt']

    @classmethod
    def resource_setup(cls):
        super().resource_setup()
        cls.vnf_id = cls.tenant.firewall(csar.firewall(), RULES,
                                         cls.addClassResourceCleanup)
        cls.server_id = cls.tenant.server_id(cls.vnf_id)
        cls.clickos = cls.tenant.clickos
        cls.stranger = cls.os_alt.clickos.ClickOSClient()

    def assertRefused(self, error, words, call, *args, **kwargs):
        """Check that a call is refused with a message that has words."""
        caught = self.assertRaises(error, call, *args, **kwargs)
        self.assertIn(words, str(caught))

    @decorators.idempotent_id('0ee40ff2-6df3-4d6f-8b3f-2a3c5ad0d7a1')
    def test_list(self):
        handlers = {each['name']: each for each in
                    self.clickos.list_handlers(self.server_id)}
        self.assertTrue(handlers['fw.config']['write'])
        self.assertTrue(handlers['passed.count']['read'])
        self.assertFalse(handlers['passed.rate']['write'])

    @decorators.attr(type='gate')
    @decorators.idempotent_id('8b4bb0f6-4f4b-4c3b-9d4e-6a6c8a2f3d10')
    def test_read_by_vnf(self):
        rules = 'allow udp dst port 53, deny all'
        self.clickos.write_handler(self.server_id, 'fw.config', rules)
        self.assertEqual(rules, self.clickos.read_handler(
            self.vnf_id, 'fw.config', 'vnfs'))
        # No machine is on the firewall's networks.
        self.assertEqual('0', self.clickos.read_handler(
            self.vnf_id, 'passed.count', 'vnfs'))

    @decorators.attr(type='gate')
    @decorators.idempotent_id('a0c8a1de-2a86-4bb6-9a31-7d7a8b2ef2f5')
    def test_write_and_read_back(self):
        before = self.clickos.show_desired_state(self.server_id)['revision']
        revision = self.clickos.write_handler(
            self.vnf_id, 'fw.config', 'allow udp, deny all', 'vnfs')
        self.assertEqual(before + 1, revision)
        self.assertIn('allow udp', self.clickos.read_handler(
            self.server_id, 'fw.config'))
        state = self.clickos.show_desired_state(self.server_id)
        self.assertEqual(
            (revision, [['fw.config', 'allow udp, deny all']]),
            (state['revision'], state['writes']))
        change = self.clickos.list_changes(self.server_id)[0]
        self.assertEqual(('applied', revision),
                         (change['status'], change['revision']))
        self.assertEqual(change, self.clickos.show_change(
            self.server_id, change['number']))

    @decorators.attr(type='gate')
    @decorators.idempotent_id('5b1d3a6e-0f43-4a0c-9d6f-6b8f2a1c7e34')
    def test_several_reads(self):
        rules = 'allow icmp, deny all'
        self.clickos.write_handler(self.server_id, 'fw.config', rules)
        names = ['fw.config', 'fw.nothing', 'passed.count']
        expected = {'fw.config': rules, 'fw.nothing': 'no-such-handler',
                    'passed.count': '0'}
        for more in {}, {'max_age': 60}, {'max_age': 60}:
            self.assertEqual(expected, self.clickos.read_handlers(
                self.server_id, names, **more))
        self.clickos.write_handler(self.server_id, 'fw.config', 'deny all')
        self.assertEqual({'fw.config': 'deny all'}, self.clickos.read_handlers(
            self.vnf_id, ['fw.config'], 'vnfs', max_age=60))

    @decorators.idempotent_id('d4f0b7a4-6b5c-4d0d-8e7c-95e2f9a6c1b8')
    def test_unknown_handler(self):
        self.assertRefused(exceptions.NotFound, 'no-such-handler',
                           self.clickos.read_handler, self.server_id,
                           'fw.nothing')
        self.assertRefused(exceptions.NotFound, 'fw.nothing',
                           self.clickos.write_handler, self.server_id,
                           'fw.nothing', 'x')

    @decorators.idempotent_id('5f2f6f7a-3f7b-4b36-a3f4-20b25c2f4c0e')
    def test_unknown_element(self):
        self.assertRefused(exceptions.NotFound, 'no-such-element',
                           self.clickos.read_handler, self.server_id,
                           'nobody.config')

    @decorators.idempotent_id('3f6a4df5-4b02-43c5-9a7f-d3ab5d0a8f61')
    def test_a_rate_cannot_be_written(self):
        self.assertRefused(
            (exceptions.Forbidden, exceptions.NotFound), 'passed.rate',
            self.clickos.write_handler, self.server_id, 'passed.rate', '0')

    @decorators.idempotent_id('7d0cf7de-88b2-4f34-8f0a-6e3d25a9a6d7')
    def test_rejected_value_keeps_the_old_rules(self):
        self.clickos.write_handler(self.server_id, 'fw.config',
                                   'allow icmp, deny all')
        before = self.clickos.show_desired_state(self.server_id)
        rules = self.clickos.read_handler(self.server_id, 'fw.config')
        self.assertRefused(exceptions.BadRequest, 'fw',
                           self.clickos.write_handler, self.server_id,
                           'fw.config', 'allow nonsense')
        self.assertEqual(before,
                         self.clickos.show_desired_state(self.server_id))
        self.assertEqual(rules, self.clickos.read_handler(
            self.server_id, 'fw.config'))
        self.clickos.write_handler(self.server_id, 'fw.config',
                                   'allow tcp, deny all')

    @decorators.attr(type='gate')
    @decorators.idempotent_id('f0d6c9b1-3c3a-4d5b-8e8e-7f5f5f8b9f22')
    def test_a_batch_is_all_or_nothing(self):
        self.clickos.write_handler(self.server_id, 'fw.config', 'deny all')
        before = self.clickos.show_desired_state(self.server_id)
        self.assertRefused(
            exceptions.NotFound, 'fw.nothing', self.clickos.write_handlers,
            self.server_id, [['fw.config', 'allow all'],
                             ['fw.nothing', 'x']])
        self.assertNotIn('allow all', self.clickos.read_handler(
            self.server_id, 'fw.config'))
        self.assertEqual(before,
                         self.clickos.show_desired_state(self.server_id))

    @decorators.idempotent_id('b1c5e3de-1a5d-4b52-8b0e-d19d6f7dfb7e')
    def test_malformed_requests(self):
        self.assertRefused(exceptions.BadRequest, 'server id',
                           self.clickos.list_handlers, 'not-a-uuid')
        self.assertRefused(exceptions.BadRequest, 'handler: expected',
                           self.clickos.read_handler, self.server_id,
                           'fw.con fig')
        self.assertRefused(exceptions.BadRequest, 'value: expected a text',
                           self.clickos.write_handler, self.server_id,
                           'fw.config', {'a': 1})
        self.assertRefused(exceptions.BadRequest, 'the limit is',
                           self.clickos.write_handler, self.server_id,
                           'fw.config', 'a' * 600000)

    @decorators.attr(type=['gate', 'negative'])
    @decorators.idempotent_id('c7a5a9d0-0e3f-46f6-8f2b-5ea7b0a4c3e9')
    def test_another_tenant(self):
        for kind, guest_id, name in (
                ('servers', self.server_id, self.server_id),
                ('vnfs', self.vnf_id, self.vnf_id)):
            self.assertRefused(exceptions.NotFound, name,
                               self.stranger.list_handlers, guest_id, kind)
            self.assertRefused(exceptions.NotFound, name,
                               self.stranger.read_handler, guest_id,
                               'fw.config', kind)
            self.assertRefused(exceptions.NotFound, name,
                               self.stranger.write_handler, guest_id,
                               'fw.config', 'allow all', kind)
            self.assertRefused(exceptions.NotFound, name,
                               self.stranger.show_desired_state, guest_id,
                               kind)
            self.assertRefused(exceptions.NotFound, name,
                               self.stranger.delete_desired_state, guest_id,
                               kind)
        self.assertNotIn('allow all', self.clickos.read_handler(
            self.server_id, 'fw.config'))

    @decorators.attr(type='negative')
    @decorators.idempotent_id('1c7b8b4d-2f9f-4c50-9f0d-0f5b8b8a8a11')
    def test_without_a_token(self):
        self.clickos.auth_provider.set_alt_auth_data('headers', None)
        self.assertRaises(exceptions.Unauthorized,
                          self.clickos.list_handlers, self.server_id)

    @decorators.idempotent_id('6e1f8a34-8d3e-4c26-bb06-8ed6b1c7d3d4')
    def test_parallel_writes_are_serialized(self):
        """The last revision is what both the guest and the record have."""
        before = self.clickos.show_desired_state(self.server_id)['revision']
        rules = {f'allow tcp dst port {1000 + i}, deny all'
                 for i in range(WRITERS)}
        with concurrent.futures.ThreadPoolExecutor(WRITERS) as pool:
            revisions = dict(pool.map(self._write, rules))
        self.assertEqual(
            set(range(before + 1, before + 1 + WRITERS)), set(revisions))
        last = revisions[max(revisions)]
        state = self.clickos.show_desired_state(self.server_id)
        self.assertEqual(['fw.config', last], state['writes'][-1])
        self.assertIn(last.partition(',')[0], self.clickos.read_handler(
            self.server_id, 'fw.config'))

    def _write(self, rules):
        client = self.os_primary.clickos.ClickOSClient()
        return client.write_handler(self.server_id, 'fw.config',
                                    rules), rules

    @decorators.idempotent_id('2b9f8f0e-5b1d-4b0c-9f39-3e9d1c0b7a55')
    def test_only_a_member_of_the_owner_or_a_service_sees_the_state(self):
        admin = self.os_admin.clickos.ClickOSClient()
        self.assertEqual(
            self.clickos.show_desired_state(self.server_id),
            admin.show_desired_state(self.server_id))
        self.assertRefused(exceptions.Forbidden, 'clickos:handler:read',
                           admin.read_handler, self.server_id, 'fw.config')

    @decorators.idempotent_id('5f7a7b0c-7a7e-4d52-8a50-1f7a4f0d6c11')
    def test_a_token_of_no_project(self):
        unscoped = auth.KeystoneV3AuthProvider(
            self.os_primary.credentials, CONF.identity.uri_v3,
            scope='unscoped')
        resp, body = self.clickos.raw_request(
            f'{self.clickos.base_url}/v1/servers/{self.server_id}/handlers',
            'GET', {'X-Auth-Token': unscoped.get_token()})
        self.assertEqual(403, resp.status)
        self.assertIn(b'no project', body)
