# SPDX-License-Identifier: Apache-2.0
"""The patches of Xen's tools, on a fresh source package; no host runs."""

import shutil
import unittest

from clickos_lab import paths
from clickos_lab.xen import patched
from clickos_lab.xen import places


class PatchesTest(unittest.TestCase):

    def test_the_series_names_every_patch(self):
        found = sorted(p.name for p in patched.SERIES.glob('*.patch'))
        self.assertEqual(found, patched.names())
        for name in found:
            text = (patched.SERIES / name).read_text()
            for part in ('\nSubject: ', '\nTested: ', '\nUpstream: '):
                self.assertIn(part, text, name)

    def test_the_series_applies_without_fuzz(self):
        state = paths.State()
        tree = patched.source(state, places.Places(state), 'patches')
        self.addCleanup(shutil.rmtree, tree.parent)
        self.assertTrue((tree / 'tools/libs/light/libxl_vale.c').exists())
