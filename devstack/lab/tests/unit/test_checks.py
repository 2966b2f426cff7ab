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

    def test_shells(self):
        for text, shell in (('#!/bin/bash\n', 'bash'), ('#!/bin/sh\n', 'sh'),
                            ('#!/usr/bin/env bash\n', 'bash'),
                            ('#!/usr/bin/env python3\n', None)):
            self.assertEqual(
                shell, shell_scripts.shell_of(self.write('script', text)))

    def test_prose_rules(self):
        long = 'Word ' * 26
        for sentence, rule in (
                ('valed drops the frame.', None),
                (long, '26 words, the limit is 25'),
                ('What is left of it is dropped.', 'begins with a clause'),
                ('What can the reader do?', None),
                ('That is why valed copies it once.', None),
                ('Of fewer turns it is not asked.', 'begins with a clause'),
                ('The limit is said there.', '"is said" hides the actor'),
                ('Nobody reads it.', 'begins with a clause')):
            broken = prose.rule_broken(sentence)
            self.assertEqual(rule is None, broken is None, sentence)
            self.assertIn(rule or '', broken or '')

    def test_prose_of_each_kind_of_file(self):
        for name, text, found in (
                ('a.md', '# Head\n\nOne `a b` two.\nMore.\n',
                 [(1, 'Head'), (3, 'One code two. More.')]),
                ('a.md', '```\nnot prose\n```\n', []),
                ('a.rs', '//! One\n//! two.\nfn a() {}\n/// Three.\n',
                 [(1, 'One two.'), (4, 'Three.')]),
                ('a.rs', 'fn a() { b("the frame is too long for it") }\n',
                 [(1, '"the frame is too long for it"')]),
                ('a.rs', 'fn a() { b("10.0.0.1 - allow 5 6 7") }\n', []),
                ('a.py', '"""One.\n\n:param a: two\n"""\n# Three.\n',
                 [(1, 'One.'), (3, ':param a: two'), (5, 'Three.')]),
                ('a.c', '/* One\n * two. */\nint a;\n', [(1, 'One two.')]),
                ('a.sh', '# One.\n', [(1, 'One.')]),
                ('a.pcap', 'What is it.', [])):
            self.assertEqual(
                found, [(p.line, p.text)
                        for p in prose_text.paragraphs(name, text)], text)

    def test_prose_is_counted_by_area(self):
        areas = {'vale': 0, 'vale/valed': 0, 'READMEs': 0, 'rest': 0}
        for name, area in (('vale/valed/src/a.rs', 'vale/valed'),
                           ('vale/pkt-gen/a.rs', 'vale'),
                           ('vale/README.md', 'READMEs'),
                           ('Cargo.toml', 'rest')):
            self.assertEqual(area, prose.area(name, areas), name)

    def test_prose_in_a_file_has_a_place(self):
        name = self.write('docs/a.md', 'Good.\n\nNobody reads this.\n')
        fault, = prose.faults(name)
        self.assertEqual('docs/a.md:3', fault.place)

    def test_commit_subjects(self):
        for subject, good in (
                ('valed: drop link-control frames', True),
                ('nova-driver, docs: unplug deleted ports', True),
                ('Drop link-control frames', False),
                ('valed: drop link-control frames.', False),
                ('valed: ' + 'x' * 70, False)):
            self.assertEqual(good, prose.subject_fault(subject) is None,
                             subject)
