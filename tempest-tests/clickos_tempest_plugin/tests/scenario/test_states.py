# SPDX-License-Identifier: Apache-2.0
"""Servers whose user_data refers to a state in clickos-api."""

import json
import statistics
import time
import uuid

from oslo_log import log as logging
from tempest.lib.common import api_microversion_fixture
from tempest.lib.common.utils import data_utils
from tempest.lib import decorators
from tempest.lib import exceptions

from clickos_tempest_plugin.common import csar
from clickos_tempest_plugin.common import tenant
from clickos_tempest_plugin.common import waiters
from clickos_tempest_plugin.tests import base

LOG = logging.getLogger(__name__)

CONFIG = 'Idle -> fw :: IPFilter(deny all) -> kept :: Counter -> Discard;\n'
#: A guest's memory decides what it takes (docs/control-protocol.md).
LARGE_MIB = 64
RULES = 10000
WRITES = 200
CONFIG_BYTES = 1000 * 1000
VNF_CONFIG_BYTES = 950 * 1000


def many_rules():
    """Return the value of a filter in which each rule has an address."""
    return ', '.join([f'allow src 10.{number // 250}.{number % 250}.1'
                      for number in range(RULES)] + ['deny all'])


class StatesTest(base.ClickOSTest):
    """Large configurations and values, over restarts and replacements."""

    @classmethod
    def resource_setup(cls):
        super().resource_setup()
        cls.clickos = cls.tenant.clickos
        cls.servers = cls.os_primary.servers_client

    def setUp(self):
        super().setUp()
        self.useFixture(api_microversion_fixture.APIMicroversionFixture(
            compute_microversion='2.57'))
        self.large = self.make_flavor(LARGE_MIB)

    def make_state(self, config, writes=()):
        """Make a state that ends with the test; return its id."""
        state_id = self.clickos.create_state(config, writes)
        self.addCleanup(self.clickos.delete_state, state_id)
        return state_id

    def boot(self, state_id, **wanted):
        """Start a server with a state; return its id."""
        document = {'clickos': 1, 'state': state_id}
        server_id = self.tenant.create_server(
            self.addCleanup, name=data_utils.rand_name('state'),
            networks='none', user_data=tenant.encoded(json.dumps(document)),
            **wanted)
        waiters.server(self.servers, server_id)
        return server_id

    @decorators.idempotent_id('5b9d7a1e-7c43-4c0b-9f0a-1f6f1f0f7a01')
    def test_thousands_of_rules_in_one_call(self):
        server_id = self.boot(self.make_state(CONFIG), flavorRef=self.large)
        rules = many_rules()
        began_s = time.monotonic()
        self.clickos.write_handler(server_id, 'fw.config', rules)
        LOG.info('%d rules of %d bytes: %.2f s', RULES, len(rules),
                 time.monotonic() - began_s)
        self.servers.reboot_server(server_id, type='HARD')
        waiters.server(self.servers, server_id)
        found = self.clickos.read_handler(server_id, 'fw.config')
        self.assertIn('10.39.249.1', found)

    @decorators.attr(type='slow')
    @decorators.idempotent_id('5b9d7a1e-7c43-4c0b-9f0a-1f6f1f0f7a02')
    def test_a_configuration_of_a_megabyte(self):
        line = '// ' + 'x' * 77 + '\n'
        filler = (CONFIG_BYTES - len(CONFIG)) // len(line)
        state_id = self.make_state(line * filler + CONFIG)
        began_s = time.monotonic()
        server_id = self.boot(state_id, flavorRef=self.large)
        LOG.info('A server of %d bytes of configuration: %.2f s',
                 len(line) * filler + len(CONFIG),
                 time.monotonic() - began_s)
        self.assertEqual('0', self.clickos.read_handler(
            server_id, 'kept.count').strip())

    @decorators.attr(type='gate')
    @decorators.idempotent_id('5b9d7a1e-7c43-4c0b-9f0a-1f6f1f0f7a03')
    def test_the_next_server_goes_on(self):
        state_id = self.make_state(CONFIG)
        first = self.boot(state_id)
        self.clickos.write_handler(first, 'fw.config',
                                   'allow tcp, deny all')
        self.servers.delete_server(first)
        second = self.boot(state_id)
        self.assertIn('tcp', self.clickos.read_handler(second, 'fw.config'))
        self.clickos.write_handler(second, 'fw.config',
                                   'allow udp, deny all')
        self.assertEqual(4, self.clickos.restore(second, 2))
        self.assertIn('tcp', self.clickos.read_handler(second, 'fw.config'))
        self.assertEqual(['applied'] * 3, [
            each['status'] for each in self.clickos.list_changes(second)])

    @decorators.attr(type='slow')
    @decorators.idempotent_id('5b9d7a1e-7c43-4c0b-9f0a-1f6f1f0f7a05')
    def test_a_large_vnf_is_healed_without_a_copy(self):
        line = '// ' + 'x' * 77 + '\n'
        package = csar.firewall(
            click=lambda text: text + line * (VNF_CONFIG_BYTES // len(line)),
            vnfd=lambda text: text.replace(
                'virtual_mem_size: 8 MiB',
                f'virtual_mem_size: {LARGE_MIB} MiB'))
        began_s = time.monotonic()
        vnf_id = self.tenant.firewall(package, ['deny all'], self.addCleanup)
        LOG.info('A VNF of %d bytes of configuration: %.2f s',
                 VNF_CONFIG_BYTES, time.monotonic() - began_s)
        first = self.tenant.server_id(vnf_id)
        self.clickos.write_handler(vnf_id, 'fw.config', many_rules(), 'vnfs')
        before = self.clickos.show_desired_state(first)
        self.tenant.heal(vnf_id)
        self.assertEqual(first, self.tenant.server_id(vnf_id))
        self.assertEqual(before, self.clickos.show_desired_state(first))
        self.assertIn('10.39.249.1', self.clickos.read_handler(
            first, 'fw.config'))

    @decorators.attr(type='slow')
    @decorators.idempotent_id('5b9d7a1e-7c43-4c0b-9f0a-1f6f1f0f7a07')
    def test_writes_one_after_the_other(self):
        server_id = self.boot(self.make_state(CONFIG))
        taken_s = []
        for number in range(WRITES):
            began_s = time.monotonic()
            revision = self.clickos.write_handler(
                server_id, 'fw.config', f'allow src 10.0.0.{number}')
            taken_s.append(time.monotonic() - began_s)
            self.assertEqual(2 + number, revision)
        cuts = statistics.quantiles(taken_s, n=100)
        LOG.info('%d writes: p50 %.1f ms, p99 %.1f ms', WRITES,
                 1000 * cuts[49], 1000 * cuts[98])

    @decorators.attr(type='gate')
    @decorators.idempotent_id('5b9d7a1e-7c43-4c0b-9f0a-1f6f1f0f7a06')
    def test_only_the_guest_gets_a_secret(self):
        secret = self.clickos.create_secret('rules', 'allow udp, deny all')
        self.addCleanup(self.clickos.delete_secret, secret['id'])
        reference = secret['reference']
        shown = self.clickos.show_secret(secret['id'])
        self.assertEqual(('rules', reference),
                         (shown['name'], shown['reference']))
        server_id = self.boot(self.make_state(
            CONFIG, [['fw.config', reference]]))
        self.assertIn('udp', self.clickos.read_handler(server_id,
                                                       'fw.config'))
        self.clickos.write_handler(server_id, 'fw.config', 'deny all')
        self.clickos.write_handler(server_id, 'fw.config', reference)
        self.assertIn('udp', self.clickos.read_handler(server_id,
                                                       'fw.config'))
        self.assertEqual(
            [['fw.config', reference]],
            self.clickos.show_desired_state(server_id)['writes'])
        self.assertRaises(exceptions.Conflict, self.clickos.delete_secret,
                          secret['id'])

    @decorators.idempotent_id('5b9d7a1e-7c43-4c0b-9f0a-1f6f1f0f7a04')
    def test_a_state_that_does_not_exist(self):
        caught = self.assertRaises(exceptions.TempestException, self.boot,
                                   str(uuid.uuid4()))
        self.assertIn('no-such-state', str(caught))
