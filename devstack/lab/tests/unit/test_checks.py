# SPDX-License-Identifier: Apache-2.0
"""The checks of the repository find what they are for."""

import pathlib
from unittest import mock

from clickos_lab.checks import docs
from clickos_lab.checks import licenses
from clickos_lab.checks import prose
from clickos_lab.checks import prose_text
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
                ('xen-patches/l.patch', spdx + 'LGPL-2.1-only\n', True),
                ('l.py', spdx + 'LGPL-2.1-only\n', False),
                ('g.py', spdx + 'MIT\n', False)):
            problem = licenses.problem(self.write(name, text))
            self.assertEqual(good, problem is None, name)

    def test_links(self):
        found = docs.links('docs/a.md', '[x](b.md) [y](../c/#top "t") '
                           '[z](https://example.org/d) [w](#here)')
        self.assertEqual(['docs/b.md', 'docs/../c'],
                         [str(target) for target in found])

    def test_names_in_steps(self):
        names = [self.write('lab/checks/__init__.py', 'def tracked(): pass'),
                 self.write('lab/bounds.py', '')]
        for text, lost in (
                ('`checks.tracked()` `other.name`', []),
                ('`checks.track`', ['checks.track']),
                ('`checks/__init__.py` `lab/checks/` `nova/a.py`', []),
                ('`checks/init.py`', ['checks/init.py']),
                ('`bounds.py` `lab.bounds`', [])):
            self.assertEqual(lost, docs.steps(text, names), text)

    def test_shells(self):
        for text, shell in (('#!/bin/bash\n', 'bash'), ('#!/bin/sh\n', 'sh'),
                            ('#!/usr/bin/env bash\n', 'bash'),
                            ('#!/usr/bin/env python3\n', None)):
            self.assertEqual(
                shell, shell_scripts.shell_of(self.write('script', text)))

    def test_calques(self):
        name = self.write('docs/a.md', 'Good.\n\nNobody reads this.\n'
                          'It runs beside it.\n```\nit goes on\n```\n')
        self.assertEqual(
            [f"{name}:3: 'Nobody': write no other thread, no caller",
             f"{name}:4: 'beside': write next to, in addition to, while"],
            prose.calques(name))
        self.assertEqual(1, len(prose.calques(name, {4})))
        self.assertEqual([], prose.calques(name, {1}))

    def test_lines_of_prose(self):
        for name, text, found in (
                ('a.md', 'One `a`.\n\n    code\n',
                 [(1, 'One `a`.'), (2, '')]),
                ('a.rs', 'fn a() { b("text") }\n/// One.\n',
                 [(2, '/// One.')]),
                ('a.py', '"""One.\n\nTwo."""\na = 1  # three\n',
                 [(1, '"""One.'), (2, ''), (3, 'Two."""'), (4, '# three')]),
                ('a.sh', '# One.\n', [(1, '# One.')]),
                ('a.pcap', 'beside', [])):
            self.assertEqual(found, prose_text.lines(name, text), text)

    def test_changed_lines(self):
        diff = ('--- a/x\n+++ b/docs/x.md\n@@ -3 +3,2 @@\n-a\n+b\n+c\n'
                '@@ -9,2 +10,0 @@\n-d\n-e\n+++ b/y\n@@ -0,0 +1 @@\n+f\n')
        self.assertEqual({'docs/x.md': {3, 4}, 'y': {1}},
                         prose.changed_lines(diff))

    def test_a_path_without_files_is_named(self):
        name = self.write('a.md', 'Words.\n')
        with mock.patch.object(prose.checks, 'tracked', return_value=[name]):
            self.assertEqual(0, prose.main([name]))
            with self.assertRaisesRegex(SystemExit, '^docs/b.md: no file'):
                prose.main([name, 'docs/b.md'])

    def test_misspelled_words(self):
        name = self.write('a.md', 'This has a seperate word.\n')
        self.assertIn('seperate ==> separate',
                      ''.join(prose.misspelled([name])))
        self.assertEqual([], prose.misspelled(
            [self.write('b.md', 'This has none.\n')]))

    def test_commit_subjects(self):
        for subject, good in (
                ('valed: drop link-control frames', True),
                ('nova-driver, docs: unplug deleted ports', True),
                ('Drop link-control frames', False),
                ('valed: drop link-control frames.', False),
                ('valed: ' + 'x' * 70, False)):
            self.assertEqual(good, prose.subject_fault(subject) is None,
                             subject)
