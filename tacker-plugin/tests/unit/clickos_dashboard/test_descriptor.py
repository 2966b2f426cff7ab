# SPDX-License-Identifier: Apache-2.0
"""The descriptor of a package that a stranger made."""

import io
import unittest
import zipfile

from clickos_client import descriptor_reader
from clickos_dashboard.api import descriptor
from clickos_dashboard import exceptions
from tests.unit.clickos_dashboard import cloud
from tests.unit import corpus

_PROPERTY = '            p%d: {type: port, handler: a.b}\n'
_BODY = '''
topology_template:
  policies:
    - a:
        type: clickos.policies.Configuration
        properties:
          properties:
'''
_VDU = '''
  node_templates: {v: {type: tosca.nodes.nfv.Vdu.Compute, requirements: 5}}
'''


def csar(definitions, entry='a.yaml'):
    """Return a package of one file."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, 'w', zipfile.ZIP_DEFLATED) as archive:
        archive.writestr('TOSCA-Metadata/TOSCA.meta',
                         f'Entry-Definitions: {entry}\n')
        archive.writestr('a.yaml', definitions)
    return packed.getvalue()


class DescriptorTest(unittest.TestCase):

    def refused(self, content):
        with self.assertRaises(exceptions.DescriptorError) as caught:
            descriptor.read(content)
        return str(caught.exception)

    def test_a_template(self):
        found = descriptor.read(cloud.csar())
        self.assertEqual('simple', found.flavour)
        self.assertEqual(['left', 'right'],
                         [p.name for p in found.connection_points])
        (rules,) = found.properties
        self.assertEqual(('filter_rules', True, ['deny all'], 10000), (
            rules.type, rules.live, rules.default,
            rules.limits['max_items']))

    def test_aliases_that_expand_are_refused_with_their_line(self):
        lines = ['a0: &a0 [x, x]'] + [
            f'a{i}: &a{i} [{", ".join([f"*a{i - 1}"] * 9)}]'
            for i in range(1, 4)] + ['description: *a3']
        self.assertIn('a.yaml: line 2: an alias',
                      self.refused(csar('\n'.join(lines))))

    def test_a_large_file_is_not_read(self):
        text = ' ' * (descriptor_reader.MAX_BYTES + 1)
        self.assertIn('a.yaml: more than', self.refused(csar(text)))

    def test_more_fields_than_a_form_has(self):
        few, many = (_BODY + ''.join(_PROPERTY % i for i in range(count))
                     for count in (descriptor_reader.MAX_FIELDS,
                                   descriptor_reader.MAX_FIELDS + 1))
        self.assertEqual(descriptor_reader.MAX_FIELDS,
                         len(descriptor.read(csar(few)).properties))
        self.assertIn('257 properties, the limit is 256',
                      self.refused(csar(many)))

    def test_what_is_no_package_is_refused(self):
        deep = '[' * 5000
        for content in (b'', b'PK\3\4', cloud.csar()[:900], csar(deep),
                        csar('\t- x: ['), csar('', entry='no.yaml'),
                        csar(_BODY.replace('properties:', 'targets: 7', 1)
                             + _VDU),
                        csar('!!python/object/apply:os.system [x]')):
            self.assertTrue(self.refused(content))

    def test_hostile_texts_and_archives_within_the_limits(self):
        texts = corpus.yaml_texts
        for name, (_text, reason) in texts.TEXTS.items():
            with self.subTest(name):
                content = csar(texts.content(name))
                if reason is None:
                    descriptor.read(content)
                else:
                    told = self.refused(content)
                    self.assertTrue(told.startswith('a.yaml: '), told)
        for name, content in corpus.ARCHIVES.items():
            with self.subTest(name):
                self.assertNotIn('its reading', self.refused(content))

    def test_values_that_json_has_not(self):
        (found,) = descriptor.read(csar(
            _BODY + '            d: {type: x, default: [2026-01-02]}\n'
        )).properties
        self.assertEqual(['2026-01-02'], found.default)

    def test_strange_values_make_an_empty_descriptor(self):
        for text in ('', '[]', '7', 'topology_template: 5',
                     'topology_template: {node_templates: [], policies: 9}'):
            found = descriptor.read(csar(text))
            self.assertEqual(((), (), ()), (
                found.vdus, found.connection_points, found.properties))
