# SPDX-License-Identifier: Apache-2.0
"""Packages as other people write them, and every fault by file and line."""

from tacker_clickos.package import review
from tests.unit.tacker_clickos import test_package

VNFD = test_package.VNFD
_CP = ('type: tosca.nodes.nfv.VduCp\n'
       '      properties: {layer_protocols: [ipv4, ipv6], order: 1}')


class ReviewTestCase(test_package.PackageTestCase):

    def faults(self, *changes):
        """Return the faults of the firewall with texts replaced."""
        content = test_package.files()
        text = content[VNFD].decode()
        for old, new in changes:
            self.assertIn(old, text)
            text = text.replace(old, new)
        content[VNFD] = text.encode()
        self.text = text
        return review.faults(test_package.csar(content))

    def assertFault(self, fault, line_of, words):
        line = self.text[:self.text.index(line_of)].count('\n') + 1
        self.assertTrue(fault.startswith('%s:%d: ' % (VNFD, line)), fault)
        self.assertIn(words, fault)


class ForeignTest(ReviewTestCase):

    def test_requirements_in_their_long_form(self):
        self.assertEqual([], self.faults(
            ('- virtual_binding: VDU1', '- virtual_binding: {node: VDU1, '
             'relationship: tosca.relationships.nfv.VirtualBindsTo}')))

    def test_derived_types(self):
        self.assertEqual([], self.faults(
            ('topology_template:',
             '  acme.Base: {derived_from: tosca.nodes.nfv.Vdu.Compute}\n'
             '  acme.Vdu: {derived_from: acme.Base}\n'
             '  acme.Cp: {derived_from: tosca.nodes.nfv.VduCp}\n\n'
             'topology_template:'),
            ('type: tosca.nodes.nfv.Vdu.Compute', 'type: acme.Vdu'),
            ('type: tosca.nodes.nfv.VduCp', 'type: acme.Cp')))

    def test_inputs_with_a_default(self):
        self.assertEqual([], self.faults(
            ('inputs: {}', 'inputs: {mem: {type: string, default: 16 MiB}}'),
            ('virtual_mem_size: 8 MiB',
             'virtual_mem_size: {get_input: mem}')))

    def test_a_vdu_that_begins_with_no_guest(self):
        self.assertEqual([], self.faults(
            ('initial_delta: {number_of_instances: 1}',
             'initial_delta: {number_of_instances: 0}')))

    def test_sizes_in_every_case(self):
        for size in ('8 mib', '8.0 MIB', '8mb', '16777216 B', '0.01 gib'):
            self.assertEqual([], self.faults(
                ('virtual_mem_size: 8 MiB', 'virtual_mem_size: ' + size)))


class FaultsTest(ReviewTestCase):

    def test_all_faults_at_once(self):
        found = self.faults(
            ('virtual_mem_size: 8 MiB', 'virtual_mem_size: eight'),
            ('handler: fw.config', 'handler: 7'),
            (_CP, _CP.replace('tosca.nodes.nfv.VduCp', 'acme.Unknown')))
        self.assertEqual(3, len(found))
        self.assertFault(found[0], '    right:\n', 'type acme.Unknown is not')
        self.assertFault(found[1], '    VDU1:\n', "'eight' is not a size")
        self.assertFault(found[2], '            rules:', 'handler 7')

    def test_what_is_not_supported(self):
        for changes, words in (
                ([('inputs: {}', 'inputs: {mem: {type: string}}'),
                  ('virtual_mem_size: 8 MiB',
                   'virtual_mem_size: {get_input: mem}')],
                 'get_input mem: the input has no default'),
                ([('virtual_mem_size: 8 MiB',
                   'virtual_mem_size: {concat: [8, MiB]}')],
                 'function concat is not supported'),
                ([('  policies:\n', '  policies:\n    - scale:\n        type:'
                   ' tosca.policies.nfv.VnfLcmOperations\n')],
                 'policy type tosca.policies.nfv.VnfLcmOperations is not'),
                ([('    left:\n', '    disk:\n      type: tosca.nodes.nfv.Vdu.'
                   'VirtualBlockStorage\n\n    left:\n')],
                 'VirtualBlockStorage is not supported')):
            (found,) = self.faults(*changes)
            self.assertIn(words, found)
            self.assertRegex(found, r'\ADefinitions/firewall.yaml:[0-9]+: ')

    def test_what_only_tosca_parser_finds(self):
        (found,) = self.faults(
            ('    VDU1:\n', '    VDU1:\n      atributes: {}\n'))
        self.assertFault(found, '      atributes', 'unknown field')

    def test_many_faults_are_cut(self):
        rules = self.faults(('            rules:\n', ''.join(
            '            r%d: {type: nonsense, handler: a.b}\n' % number
            for number in range(40)) + '            rules:\n'))
        self.assertEqual(review.MAX_FAULTS + 1, len(rules))
        self.assertEqual('and 20 more', rules[-1])

    def test_links_and_circles_of_types(self):
        found = self.faults(
            ('topology_template:', '  a.A: {derived_from: a.B}\n'
             '  a.B: {derived_from: a.A}\n\ntopology_template:'),
            ('type: tosca.nodes.nfv.Vdu.Compute', 'type: a.A'))
        self.assertIn('type a.A is not supported', found[0])


class FilterTest(test_package.PackageTestCase):

    def test_a_member_gets_every_fault(self):
        self.assertPutRefused(
            self.changed(VNFD, 'virtual_mem_size: 8 MiB',
                         'virtual_mem_size: eight'),
            VNFD + ':53: VDU1', "'eight' is not a size")
