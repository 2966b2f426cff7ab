# SPDX-License-Identifier: Apache-2.0
"""The patches, on fresh sources: of Xen's tools and of netback."""

import shutil
import unittest

from clickos_lab import paths
from clickos_lab.xen import netback
from clickos_lab.xen import patched
from clickos_lab.xen import xen_paths
from tests.xen import base


class PatchesTest(unittest.TestCase):

    def test_each_series_names_every_patch(self):
        for series in (patched.SERIES, netback.SERIES):
            found = sorted(p.name for p in series.glob('*.patch'))
            self.assertEqual(found, patched.names(series))
            for name in found:
                text = (series / name).read_text()
                for part in ('\nSubject: ', '\nTested: ', '\nUpstream: '):
                    self.assertIn(part, text, name)

    def test_the_series_applies_without_fuzz(self):
        state = paths.State()
        tree = patched.source(state, xen_paths.XenPaths(state), 'patches')
        self.addCleanup(shutil.rmtree, tree.parent)
        self.assertTrue((tree / 'tools/libs/light/libxl_vale.c').exists())


class NetbackTest(base.XenTest):
    """The patched netback loads; its guests run in ``make soak``."""

    @classmethod
    def add_files(cls, contents):
        netback.build(cls.state, cls.places)
        netback.add(cls.places, contents)

    def test_it_takes_the_place_of_the_stock_module(self):
        self.dom0.check(f'rmmod xen_netback && insmod {netback.MODULE}')
