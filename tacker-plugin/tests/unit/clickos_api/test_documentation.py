# SPDX-License-Identifier: Apache-2.0
"""docs/interfaces.md describes the routes that clickos-api serves."""

import pathlib
import re

from tests.unit.clickos_api import base

_PAGE = pathlib.Path(__file__).parents[4] / 'docs/interfaces.md'
_ROW = re.compile(r'^\| `([A-Z]+) (/v1/[^`]+)` \|', re.MULTILINE)


class DocumentationTest(base.TestCase):

    def test_the_page_has_every_route(self):
        served = {(method, _as_written(rule.rule))
                  for rule in self.app.url_map.iter_rules()
                  if rule.rule.startswith('/v1/')
                  for method in rule.methods - {'HEAD', 'OPTIONS'}}
        self.assertEqual(served, set(_ROW.findall(_PAGE.read_text())))


def _as_written(rule):
    """Return a rule of Flask as the page writes it."""
    rule = rule.replace('<any(servers,vnfs):kind>', 'servers')
    return re.sub(r'<(?:path:|int:)?(\w+)>', lambda found: '{%s}' % (
        'name' if found[1] == 'name' else 'id'), rule)
