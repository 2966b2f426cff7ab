# SPDX-License-Identifier: Apache-2.0
"""The host's kind, resources and inventory."""

from nova.compute import provider_tree
from nova import exception as nova_exception
from nova import objects
from oslo_utils import timeutils

from nova_clickos import exception
from nova_clickos import host
from tests.unit.nova_clickos import base


class HostTest(base.DriverTestCase):

    def test_process_host_needs_consent(self):
        self.driver.init_host('compute1')
        self.conf.config(group='clickos', allow_process_host=False)
        error = self.assertRaises(nova_exception.InvalidConfiguration,
                                  self.driver.init_host, 'compute1')
        self.assertIn('allow_process_host', error.format_message())

    def test_a_guest_whose_spawn_nobody_finished_ends(self):
        for uuid, launched_at in ((base.UUID, None), (base.IMAGE, 'then')):
            self.spawn(base.instance(uuid=uuid))
            self.on_host.return_value.append(base.instance(
                uuid=uuid, launched_at=launched_at and timeutils.utcnow()))
        self.driver.init_host('compute1')
        self.assertEqual([base.IMAGE], self.driver.list_instance_uuids())

    def test_xen_host_needs_none(self):
        self.conf.config(group='clickos', allow_process_host=False)
        self.cosmosd.host_kind = 'xen'
        self.driver.init_host('compute1')

    def test_no_cosmosd_no_compute(self):
        self.cosmosd.stop()
        with self.assertLogs(exception.LOG.logger) as logs:
            self.assertRaises(exception.CosmosdUnavailable,
                              self.driver.init_host, 'compute1')
        self.assertIn(self.cosmosd.path, logs.output[0])

    def test_wrong_role(self):
        self.cosmosd.faults['hello'] = ('forbidden', 'uid 5 has no role')
        error = self.assertRaises(exception.CosmosdUnavailable,
                                  self.driver.init_host, 'compute1')
        self.assertIn('uid 5', error.format_message())

    def test_resources_are_what_nova_stores(self):
        for kind, specs in (('process', 0), ('xen', 1)):
            self.cosmosd.host_kind = kind
            node = objects.ComputeNode()
            node.update_from_virt_driver(
                self.driver.get_available_resource('compute1'))
            self.assertEqual('clickos-' + kind, node.hypervisor_type)
            self.assertEqual((2, 2048, 256), (node.vcpus, node.memory_mb,
                                              node.local_gb))
            self.assertEqual(64, node.memory_mb_used)
            self.assertEqual(1000, node.hypervisor_version)
            self.assertEqual('compute1', node.hypervisor_hostname)
            self.assertEqual(specs, len(node.supported_hv_specs))

    def test_inventory(self):
        self.conf.config(cpu_allocation_ratio=8.0)
        tree = provider_tree.ProviderTree()
        tree.new_root('compute1', base.UUID)
        self.driver.update_provider_tree(tree, 'compute1')
        inventory = tree.data('compute1').inventory
        self.assertEqual({'VCPU', 'MEMORY_MB', 'DISK_GB',
                          'CUSTOM_CLICKOS_GUEST'}, set(inventory))
        self.assertEqual(
            {'total': 256, 'reserved': 0, 'min_unit': 1, 'max_unit': 1,
             'step_size': 1, 'allocation_ratio': 1.0},
            inventory['CUSTOM_CLICKOS_GUEST'])
        self.assertEqual(
            {'total': 2, 'reserved': 0, 'min_unit': 1, 'max_unit': 2,
             'step_size': 1, 'allocation_ratio': 8.0}, inventory['VCPU'])
        self.assertEqual(2048, inventory['MEMORY_MB']['total'])
        self.assertEqual(256, inventory['DISK_GB']['total'])

    def test_flavors_with_more_vcpus_than_a_guest_may_have_do_not_fit(self):
        for kind, most in (('process', 2), ('xen', 1)):
            self.cosmosd.host_kind = kind
            tree = provider_tree.ProviderTree()
            tree.new_root('compute1', base.UUID)
            self.driver.update_provider_tree(tree, 'compute1')
            vcpus = tree.data('compute1').inventory['VCPU']
            self.assertEqual((2, most), (vcpus['total'], vcpus['max_unit']))

    def test_a_guest_gets_the_vcpus_of_its_flavor(self):
        for kind, wanted, given in (('process', 1, 1), ('process', 2, 2),
                                    ('process', 99, 8), ('xen', 2, 1)):
            self.cosmosd.host_kind = kind
            self.spawn(base.instance(flavor=base.flavor(8, vcpus=wanted)))
            self.assertEqual(given, self.cosmosd.guests[base.UUID]['vcpus'])
            found = self.driver.get_available_resource('compute1')
            self.assertEqual(given, found['vcpus_used'])
            args = [args for verb, args in self.cosmosd.requests
                    if verb == 'create'][-1]
            self.assertEqual(given > 1, 'vcpus' in args)

    def test_an_earlier_cosmosd_knows_no_vcpus(self):
        info = {'cpus': 2, 'guests': 1}
        self.assertEqual(1, host.max_vcpus(info))

    def test_an_image_can_ask_for_a_kind_of_host(self):
        tree = provider_tree.ProviderTree()
        tree.new_root('compute1', base.UUID)
        tree.add_traits('compute1', 'CUSTOM_OF_THE_OPERATOR')
        for kind in ('process', 'xen'):
            self.cosmosd.host_kind = kind
            self.driver.update_provider_tree(tree, 'compute1')
            self.assertEqual(
                {'CUSTOM_OF_THE_OPERATOR', 'CUSTOM_CLICKOS_' + kind.upper()},
                set(tree.data('compute1').traits))

    def test_node_and_uptime(self):
        self.assertEqual(['compute1'], self.driver.get_available_nodes())
        self.assertEqual('cosmosd is up 77 s', self.driver.get_host_uptime())

    def test_a_host_has_no_figures_of_processors(self):
        """Nova's monitors then report none, and log no error."""
        self.assertRaises(NotImplementedError, self.driver.get_host_cpu_stats)

    def test_cosmosd_away(self):
        self.cosmosd.stop()
        for call in (lambda: self.driver.get_available_resource('compute1'),
                     self.driver.get_num_instances):
            # Nova takes this class as "later", without a trace in its log.
            self.assertRaises(nova_exception.VirtDriverNotReady, call)
