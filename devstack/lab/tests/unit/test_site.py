# SPDX-License-Identifier: Apache-2.0
"""Faults in pages fail the build of the site; its reference is complete."""

import configparser
import pathlib
import re

import clickos_api.http.openapi
from clickos_lab.checks import site
from clickos_lab import paths
from clickos_lab.site import elements
from clickos_lab.site import openapi
from clickos_lab.site import verbs
from tests.unit import base

_CONTENTS = """
# Site
```{toctree}
page
```
"""
_ELEMENT = """
//! Counts packets.
//!
//! # Ports
//! 1/1.
pub static ELEMENT: Class = Class {
    ports: "1/1",
    name: "Tally",
};
"""


class SiteTest(base.TestCase):

    def build(self, page, **others):
        """Build a site of a table of contents and a page."""
        pages = self.folder / 'source/docs'
        pages.mkdir(parents=True)
        for name, text in {'index': _CONTENTS, 'page': page,
                           **others}.items():
            (pages / f'{name}.md').write_text(text)
        return site.build(self.state, self.folder / 'source')

    def test_links_to_pages_and_headings(self):
        first = self.build('# Page\n[a](index.md#site) [b](#page)\n')
        self.assertIn('<h1>Site', first.read_text())

    def test_a_link_to_no_page(self):
        self.assertIsNone(self.build('# Page\n[a](absent.md)\n'))

    def test_a_link_to_no_heading(self):
        self.assertIsNone(self.build('# Page\n[a](index.md#absent)\n'))

    def test_a_page_that_no_contents_name(self):
        self.assertIsNone(self.build('# Page\n', orphan='# Orphan\n'))


class ReferenceTest(base.TestCase):

    def test_each_namespace_of_options_has_a_page(self):
        setup = configparser.ConfigParser()
        setup.read(paths.REPO / 'setup.cfg')
        entries = setup['options.entry_points']['oslo.config.opts']
        named = {line.split(' = ')[0] for line in entries.split('\n') if line}
        folder = paths.REPO / 'docs/reference/configuration'
        shown = {page.read_text().split()[-1] for page in folder.glob('*.rst')}
        self.assertEqual(named, shown)

    def test_each_verb_and_type_has_a_section(self):
        text = verbs.markdown(paths.REPO)
        self.assertIn('### cosmosd: `handler-write`\nApplies all writes, or '
                      'none. With', text)
        self.assertIn('### valed: `hello`\n', text)
        self.assertIn('| `vifs` | list of [Vif](#type-vif) |', text)
        self.assertIn('| `"tap"` | The tap interface `ifname`, made if '
                      'missing. |', text)
        for link in set(re.findall(r'\(#type-(\w+)\)', text)):
            self.assertIn(f'\n### type {link}\n', text.lower())

    def test_each_request_of_the_api_has_a_section(self):
        text = openapi.markdown(paths.REPO)
        for path in clickos_api.http.openapi.description()['paths']:
            self.assertIn(f' {path}`\n', text)
        self.assertIn('### `POST /v1/servers/{id}/handlers`\n', text)
        self.assertIn('Give a state another configuration; it keeps its '
                      'writes. With `keep` it', text)
        self.assertIn('| body | {`writes`: list of \\[string, string\\]} |',
                      text)

    def test_types(self):
        for described, text in (
                ({'type': 'integer', 'minimum': 0, 'maximum': 9},
                 'integer, at most 9'),
                ({'type': ['string', 'null']}, 'string or null'),
                ({'enum': ['up', 'down']}, '`"up"` or `"down"`'),
                ({'const': 1}, '`1`'), ({}, 'any value'),
                ({'prefixItems': [{'type': 'string'}, {'type': 'number'}]},
                 '\\[string, number\\]'),
                ({'anyOf': [{'$ref': '#/$defs/Mac'}, {'type': 'null'}]},
                 '[Mac](#type-mac) or null')):
            self.assertEqual(text, verbs.written(described))

    def element(self, text):
        """Return a file below an elements' folder of the group test."""
        file = self.folder / elements.FOLDERS[0] / 'test/tally.rs'
        file.parent.mkdir(parents=True)
        file.write_text(text)
        return pathlib.Path(file)

    def test_an_element(self):
        self.element(_ELEMENT)
        text = elements.markdown(self.folder)
        self.assertIn('| test | [Tally](#tally) |', text)
        self.assertIn('## Tally\nGroup `test`. Counts packets.\n', text)
        self.assertIn('\n**Ports**\n\n1/1.', text)

    def test_a_file_without_a_class(self):
        file = self.element('//! Nothing.\n')
        self.assertRaises(ValueError, elements.read, file)

    def test_all_elements(self):
        files = [file for folder in elements.FOLDERS
                 for file in (paths.REPO / folder).glob('*/*.rs')]
        text = elements.markdown(paths.REPO)
        self.assertEqual(len(files), text.count('\nGroup `'))
