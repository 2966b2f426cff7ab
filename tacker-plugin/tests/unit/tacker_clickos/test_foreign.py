# SPDX-License-Identifier: Apache-2.0
"""Packages in the styles of other projects: deployed, or refused by name.

Each folder of tests/foreign is a package; the standard's type files are ours.
"""

import json

from tacker_clickos import exception
from tacker_clickos.package import review
from tests.unit.tacker_clickos import base
from tests.unit.tacker_clickos import test_infra_driver
from tests.unit.tacker_clickos import test_package

FOREIGN = base.ROOT / 'tacker-plugin' / 'tests' / 'foreign'
_TYPES = base.TEMPLATES / 'clickos_types' / 'clickos_types.yaml'
_COMMON = (b'tosca_definitions_version: tosca_simple_yaml_1_2\n'
           b'description: common types\n')


def files(name):
    """Return {name: bytes} of a package, with the standard's type files."""
    folder = FOREIGN / name
    found = {path.relative_to(folder).as_posix(): path.read_bytes()
             for path in sorted(folder.rglob('*')) if path.is_file()}
    if any(path.startswith('Definitions/') for path in found):
        found['Definitions/etsi_nfv_sol001_vnfd_types.yaml'] = (
            _TYPES.read_bytes())
        found['Definitions/etsi_nfv_sol001_common_types.yaml'] = _COMMON
    return found


def with_meta(found, entry):
    """Add a TOSCA.meta, as most projects write it."""
    return dict(found, **{'TOSCA-Metadata/TOSCA.meta': (
        'TOSCA-Meta-File-Version: 1.0\nCSAR-Version: 1.1\n'
        'Created-By: Example\nEntry-Definitions: %s\n' % entry).encode()})


def faults(found):
    """Return the faults of a package."""
    return review.faults(test_package.csar(found))


class ReviewTest(base.TestCase):

    def test_two_vdus_and_a_link_of_their_own(self):
        self.assertEqual([], faults(with_meta(
            files('two-vdus'), 'Definitions/two.yaml')))

    def test_two_flavours_of_derived_types(self):
        self.assertEqual([], faults(with_meta(
            files('two-flavours'), 'Definitions/top.yaml')))

    def test_each_part_that_is_not_followed_is_named(self):
        found = faults(with_meta(files('not-followed'),
                                 'Definitions/many.yaml'))
        text = '\n'.join(found)
        for line, words in (
                (14, 'VNF: configurable_properties is not supported'),
                (31, 'pinned: virtual_cpu: virtual_cpu_pinning is not'),
                (34, 'stored: boot_data is not supported'),
                (52, 'disk: type tosca.nodes.nfv.Vdu.VirtualBlockStorage'),
                (55, 'fast: bitrate_requirement is not supported'),
                (60, 'outside: type tosca.nodes.nfv.VnfExtCp is not'),
                (64, 'middle: l2_protocol_data is not supported'),
                (74, "zone: scope 'zone' is not supported"),
                (78, 'secured: policy type tosca.policies.nfv.SecurityGr')):
            self.assertIn('Definitions/many.yaml:%d: %s' % (line, words),
                          text)

    def test_each_of_several_faults_of_a_node_in_turn(self):
        """A node has one fault at a time; the next shows behind it."""
        content = with_meta(files('not-followed'), 'Definitions/many.yaml')
        name = 'Definitions/many.yaml'
        for mended, words in (
                (b'        boot_data: echo hello\n',
                 'virtual_local_storage is not supported: a guest has no'),
                (b'            virtual_local_storage: [{size_of_storage: '
                 b'1 GB}]\n', 'virtual_storage is not supported: a guest')):
            self.assertIn(mended, content[name])
            content[name] = content[name].replace(mended, b'')
            self.assertIn(words, '\n'.join(faults(content)))

    def test_a_package_for_heat(self):
        found = faults(with_meta(files('heat'),
                                 'Definitions/df_simple.yaml'))
        self.assertIn('heal_end.implementation', found[0])
        self.assertIn('clickos_mgmt only', found[0])

    def test_a_package_of_osm(self):
        fault, option = faults(files('osm'))
        self.assertIn('no file has a flavour_id', fault)
        self.assertIn('[clickos] stock_driver', option)


class DeployTest(test_infra_driver.DriverTestCase):
    """The package of two VDUs becomes guests, a network and a group."""

    def setUp(self):
        super().setUp()
        for name, content in files('two-vdus').items():
            path = self.package / name
            path.parent.mkdir(exist_ok=True)
            path.write_bytes(content)
        (self.package / 'Definitions' / 'firewall.yaml').unlink()
        self.info.vnfc_resource_info[0].vdu_id = 'filter'
        self.info.vnfc_resource_info += (
            base.vnf_instance().instantiated_vnf_info.vnfc_resource_info)
        self.info.vnfc_resource_info[1].vdu_id = 'inspect'
        self.request = base.instantiate_request()
        self.request.flavour_id = 'pair'
        flavors = self.cloud.compute.flavors.side_effect

        def with_specs(get_extra_specs=False):
            for flavor in flavors():
                flavor.extra_specs = {}
                if get_extra_specs and flavor.name == 'big':
                    flavor.extra_specs = {'hw:fast': 'true',
                                          'nic:near': 'yes'}
                yield flavor
        self.cloud.compute.flavors.side_effect = with_specs

    def test_guests_network_and_group(self):
        self.instantiate(self.request)
        ((network_id, network),) = self.cloud.networks.items()
        self.assertEqual('inside-' + base.VNF_ID, network.name)
        self.assertEqual(['172.31.7.0/24'],
                         [subnet.cidr for subnet in network.subnets])
        self.assertEqual(
            {'filter-0-inner-left', 'inspect-0-inner-right'},
            {port.name for port in self.cloud.ports.values()
             if port.network_id == network_id})
        (group,) = self.cloud.server_groups.values()
        self.assertEqual(('apart-' + base.VNF_ID, 'anti-affinity'),
                         (group.name, group.policy))
        for server in self.cloud.servers.values():
            self.assertEqual({'group': group.id},
                             server.wanted['scheduler_hints'])
            self.assertEqual('big', server.wanted['flavor_id'])

    def test_nothing_is_left(self):
        self.instantiate(self.request)
        arguments = dict(plugin=None, context=None, vnf_id='x',
                         auth_attr=dict(base.ACCESS), vnf_instance=self.vnf)
        self.vnf.instantiation_state = 'NOT_INSTANTIATED'
        self.driver.delete(terminate_vnf_req=self.request, **arguments)
        self.driver.delete_wait(**arguments)
        self.assertEqual(
            ({}, {}, {}, {}),
            (self.cloud.servers, self.cloud.ports, self.cloud.networks,
             self.cloud.server_groups))

    def test_a_flavor_that_lacks_a_spec(self):
        self.cloud.compute.flavors.side_effect = (
            lambda get_extra_specs=False: iter([]))
        with self.assertRaisesRegex(
                exception.ResourceNotUsable,
                'flavor 16 MiB, 1 vCPU, hw:fast=true, nic:near=yes'):
            self.instantiate(self.request)
        self.assertEqual(({}, {}), (self.cloud.networks,
                                    self.cloud.server_groups))

    def test_a_request_that_connects_an_internal_point(self):
        text = json.dumps(self.request.ext_virtual_links[0].ext_cps[0].cpd_id)
        self.assertEqual('"left"', text)
        self.request.ext_virtual_links[0].ext_cps[0].cpd_id = 'inner-left'
        with self.assertRaisesRegex(exception.ResourceNotUsable,
                                    'inner-left: it is on the internal link'):
            self.instantiate(self.request)
