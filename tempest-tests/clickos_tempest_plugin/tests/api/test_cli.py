# SPDX-License-Identifier: Apache-2.0
"""The openstack command as a tenant types it."""

import json
import pathlib
import tempfile

from tempest import config
from tempest.lib.common import api_microversion_fixture
from tempest.lib.common.utils import data_utils
from tempest.lib import decorators
from tempest.lib import exceptions

from clickos_tempest_plugin.common import csar
from clickos_tempest_plugin.common import tenant
from clickos_tempest_plugin.common import waiters
from clickos_tempest_plugin.tests.api import typed

CONF = config.CONF

OLD = """s :: RatedSource(LENGTH 60, RATE 100) -> c :: Counter -> d :: Discard;
Idle -> ToDevice(0);
"""
NEW = OLD.replace('-> d', '-> n :: Null -> d')


class CommandTest(typed.CommandLine):
    """openstack clickos handler list, read, write; port stats; a second VNF.
    """

    @classmethod
    def resource_setup(cls):
        super().resource_setup()
        cls.vnf_id = cls.tenant.firewall(csar.firewall(), ['deny all'],
                                         cls.addClassResourceCleanup)

    @decorators.idempotent_id('d6e0f3f2-4a6e-4bb0-9a49-5a3b0bb6c001')
    def test_list(self):
        done = self.openstack('handler', 'list', '--vnf', self.vnf_id,
                              '--class', 'IPFilter', '-f', 'value')
        self.assertEqual(0, done.returncode, done.stderr)
        self.assertIn('fw.config True True', done.stdout)
        self.assertNotIn('passed.', done.stdout)

    @decorators.idempotent_id('d6e0f3f2-4a6e-4bb0-9a49-5a3b0bb6c002')
    def test_write_and_read_by_names(self):
        name = self.tenant.tacker.show_vnf(self.vnf_id)['vnfInstanceName']
        done = self.openstack('handler', 'write', '--vnf', name, 'fw.config',
                              'allow icmp, deny all')
        self.assertEqual(0, done.returncode, done.stderr)
        self.assertIn('fw.config: accepted, revision 2', done.stdout)
        server = self.tenant.servers.show_server(
            self.tenant.server_id(self.vnf_id))['server']
        done = self.openstack('handler', 'read', '-f', 'json', self.vnf_id,
                              '--vnf', 'fw.config')
        self.assertEqual({'fw.config': 'allow icmp, deny all'}, json.loads(
            self.assertEnds(0, done)))
        done = self.openstack('handler', 'read', server['name'], 'fw.config')
        self.assertEqual('allow icmp, deny all', done.stdout.strip(),
                         done.stderr)

    @decorators.idempotent_id('d6e0f3f2-4a6e-4bb0-9a49-5a3b0bb6c004')
    def test_port_stats(self):
        done = self.openstack('port', 'stats', '--vnf', self.vnf_id,
                              '-f', 'json')
        self.assertEqual(0, done.returncode, done.stderr)
        rows = json.loads(done.stdout)
        self.assertEqual(['up', 'up'], [row['Link'] for row in rows])
        for row in rows:
            self.assertIsInstance(row['Dropped'], dict)

    @decorators.attr(type='negative')
    @decorators.idempotent_id('d6e0f3f2-4a6e-4bb0-9a49-5a3b0bb6c007')
    def test_the_descriptor_owns_the_configuration(self):
        path = self.file('new.click', 'Idle;')
        for guest in (('--vnf', self.vnf_id),
                      (self.tenant.server_id(self.vnf_id),)):
            done = self.openstack('config', 'replace', *guest, path)
            self.assertEnds(1, done)
            self.assertIn('HTTP 409, owned-by-vnf', done.stderr)

    @decorators.attr(type='negative')
    @decorators.idempotent_id('d6e0f3f2-4a6e-4bb0-9a49-5a3b0bb6c005')
    def test_a_second_vnf_of_one_name(self):
        vnf = self.tenant.tacker.show_vnf(self.vnf_id)
        caught = self.assertRaises(
            exceptions.Conflict, self.tenant.tacker.create_vnf,
            vnf['vnfdId'], vnf['vnfInstanceName'])
        self.assertIn('choose another name', str(caught))

    @decorators.idempotent_id('d6e0f3f2-4a6e-4bb0-9a49-5a3b0bb6c003')
    def test_a_refusal_is_shown_and_fails(self):
        done = self.openstack('handler', 'write', '--vnf', self.vnf_id,
                              'fw.config', 'allow nonsense')
        self.assertEqual(1, done.returncode)
        self.assertIn('HTTP 400, handler-error', done.stderr)
        self.assertNotIn('Traceback', done.stderr)


class ConfigurationTest(typed.CommandLine):
    """openstack clickos config show, diff, replace of a server."""

    @classmethod
    def resource_setup(cls):
        super().resource_setup()
        cls.name = data_utils.rand_name('counting')
        ports = [cls.tenant.make_port('left', cls.addClassResourceCleanup)]
        cls.server_id = cls.tenant.boot(cls.name, ports, OLD,
                                        cls.addClassResourceCleanup)

    def count(self):
        """Return what the guest's counter counted."""
        return int(self.assertEnds(0, self.openstack(
            'handler', 'read', self.name, 'c.count')))

    @decorators.attr(type='slow')
    @decorators.idempotent_id('d6e0f3f2-4a6e-4bb0-9a49-5a3b0bb6c006')
    def test_replace_while_it_runs(self):
        wrong = self.file('wrong.click', NEW + 'w :: Wrong;\n')
        new = self.file('new.click', NEW)
        self.assertEqual(OLD, self.assertEnds(0, self.openstack(
            'config', 'show', self.name)))
        waiters.until(self.count, lambda count: count > 100, 'packets')
        done = self.openstack('config', 'replace', self.name, wrong)
        self.assertEnds(1, done)
        self.assertIn('wrong.click:3:6: ', done.stderr)
        self.assertIn('HTTP 400, bad-config', done.stderr)
        shown = self.assertEnds(1, self.openstack('config', 'diff', self.name,
                                                  new))
        self.assertIn('+s :: RatedSource', shown)

        before = self.count()
        self.assertIn('revision 1', self.assertEnds(0, self.openstack(
            'config', 'replace', self.name, new)))
        self.assertGreaterEqual(self.count(), before)
        self.assertEqual('', self.assertEnds(0, self.openstack(
            'config', 'diff', self.name, new)))
        self.tenant.servers.reboot_server(self.server_id, type='HARD')
        waiters.server(self.tenant.servers, self.server_id)
        self.assertEqual('', self.assertEnds(0, self.openstack(
            'config', 'diff', self.name, new)))
        self.rebuild(OLD + '// rebuilt\n')
        self.assertIn('-// rebuilt', self.assertEnds(1, self.openstack(
            'config', 'diff', self.name, new)))

    def rebuild(self, text):
        """Rebuild the server with another configuration."""
        self.useFixture(api_microversion_fixture.APIMicroversionFixture(
            compute_microversion='2.57'))
        self.tenant.servers.rebuild_server(
            self.server_id, CONF.compute.image_ref,
            user_data=tenant.encoded(text))
        waiters.server(self.tenant.servers, self.server_id)


class NewVnfTest(typed.CommandLine):
    """openstack clickos vnf new, package check."""

    @decorators.attr(type='slow')
    @decorators.idempotent_id('d6e0f3f2-4a6e-4bb0-9a49-5a3b0bb6c008')
    def test_a_new_vnf_runs(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.assertEnds(0, self.openstack('vnf', 'new', 'my-shaper',
                                          '--dir', folder.name))
        package = pathlib.Path(folder.name) / 'my-shaper.csar'
        self.assertEnds(0, self.openstack('package', 'check', str(package)))
        vnfd_id = self.tenant.onboard(package.read_bytes(), self.addCleanup)
        vnf_id = self.tenant.create_vnf(vnfd_id, self.addCleanup)
        tenant.completed(self.tenant.instantiate(vnf_id))
        self.assertEqual('100000', self.assertEnds(0, self.openstack(
            'handler', 'read', '--vnf', vnf_id, 'to_right.rate')).strip())


class ScaleTest(typed.CommandLine):
    """openstack clickos vnf scale."""

    @classmethod
    def resource_setup(cls):
        super().resource_setup()
        cls.vnf_id = cls.tenant.firewall(csar.firewall(), ['deny all'],
                                         cls.addClassResourceCleanup)

    @decorators.attr(type='slow')
    @decorators.idempotent_id('d6e0f3f2-4a6e-4bb0-9a49-5a3b0bb6c009')
    def test_scale_to_a_level(self):
        for level, state in ((2, 'COMPLETED'), (2, 'nothing to do'),
                             (0, 'COMPLETED')):
            self.assertEqual(state, self.assertEnds(0, self.openstack(
                'vnf', 'scale', self.vnf_id, '--aspect', 'capacity',
                '--level', str(level), '--wait', '-f', 'value', '-c',
                'state')).strip())
        done = self.openstack('vnf', 'scale', self.vnf_id, '--level', '9')
        self.assertEnds(1, done)
        self.assertIn('HTTP 400', done.stderr)
