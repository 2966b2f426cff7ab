# SPDX-License-Identifier: Apache-2.0
"""The checks of the repository find what they are for."""

import pathlib
from unittest import mock

from clickos_lab.checks import docs
from clickos_lab.checks import licenses
from clickos_lab.checks import shell_scripts
from clickos_lab import paths
from tests.unit import base


class ChecksTest(base.TestCase):

    def setUp(self):
        super().setUp()
        patch = mock.patch.object(paths, 'REPO', pathlib.Path(self.folder))
        patch.start()
        self.addCleanup(patch.stop)

    def write(self, name, text):
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return name

    def test_licenses(self):
        spdx = '# SPDX-License-' + 'Identifier: '
        for name, text, good in (
                ('a.py', spdx + 'Apache-2.0\n', True),
                ('b.py', '#!/bin/sh\n' + spdx + 'Apache-2.0\n', True),
                ('c.py', 'print()\n', False),
                ('d.py', '\n' * 9 + spdx + 'Apache-2.0\n', False),
                ('e.py', spdx + 'GPL-2.0-only\n', False),
                ('xen-patches/f.patch', spdx + 'GPL-2.0-only\n', True),
                ('g.py', spdx + 'MIT\n', False)):
            problem = licenses.problem(self.write(name, text))
            self.assertEqual(good, problem is None, name)

    def test_links(self):
        found = docs.links('docs/a.md', '[x](b.md) [y](../c/#top "t") '
                           '[z](https://example.org/d) [w](#here)')
        self.assertEqual(['docs/b.md', 'docs/../c'],
                         [str(target) for target in found])

    def test_shells(self):
        for text, shell in (('#!/bin/bash\n', 'bash'), ('#!/bin/sh\n', 'sh'),
                            ('#!/usr/bin/env bash\n', 'bash'),
                            ('#!/usr/bin/env python3\n', None)):
            self.assertEqual(
                shell, shell_scripts.shell_of(self.write('script', text)))
