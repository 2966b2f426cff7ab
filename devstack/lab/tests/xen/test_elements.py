# SPDX-License-Identifier: Apache-2.0
"""The conformance corpus of the elements, unchanged, inside a guest."""

import re

from clickos_lab import paths
from clickos_lab.xen import image
from tests.xen import base
from tests.xen import guest

_PROGRAM = 'conformance'
_CORPUS = paths.REPO / 'clickos-image/conformance'
#: Groups no image has (they reach a host's sockets), or only if asked for.
_LEFT_OUT = ('os', 'regex')


@base.slow
class ConformanceTest(base.XenTest):

    @classmethod
    def add_files(cls, contents):
        image.build(cls.state, [_PROGRAM])
        contents.add(image.folder(cls.state) / _PROGRAM,
                     f'{image.FOLDER}/{_PROGRAM}')

    def test_all_cases_pass(self):
        cases = [p for p in _CORPUS.glob('*/*.clicktest')
                 if p.parent.name not in _LEFT_OUT]
        one = guest.Guest(self.dom0, 'corpus', 'pvh', 'memory = 64')
        one.run(_PROGRAM)
        said = self.wait_for(lambda: re.search(
            r'conformance: (\d+) passed, \d+ failed, (\d+) need',
            one.console()), 300)
        failed = [line for line in one.console().splitlines()
                  if re.match(r'[a-z0-9]+/\w+-\d', line)]
        self.assertEqual([], failed)
        passed, left_out = int(said[1]), int(said[2])
        self.assertEqual(len(cases), passed + left_out)
        self.assertLessEqual(left_out, 4)
