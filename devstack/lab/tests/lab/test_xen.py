# SPDX-License-Identifier: Apache-2.0
"""The Xen host of a lab is the patched one, and cosmosd uses its libxl."""

import unittest

from clickos_lab.config import hosts
from clickos_lab import paths
from clickos_lab.suites import tempest_run
from clickos_lab.xen import compute
from clickos_lab.xen import netback
from clickos_lab.xen import patched


class XenTest(unittest.TestCase):

    def setUp(self):
        super().setUp()
        state = paths.State()
        if not tempest_run.is_up(state, hosts.XEN):
            self.skipTest('the lab has no Xen host')
        self.xen = compute.XenCompute(state)

    def test_the_host_has_all_patches(self):
        version, patches = self.xen.xen()
        self.assertRegex(version, r'^4\.17\.')
        self.assertEqual(
            [name.removesuffix('.patch')
             for name in (*patched.names(), *netback.names())], patches)

    def test_cosmosd_uses_the_patched_library(self):
        maps = self.xen.dom0.check(
            'for pid in $(pidof cosmosd); do cat /proc/$pid/maps; done')
        used = {line.split()[-1] for line in maps.splitlines()
                if 'libxenlight' in line}
        self.assertEqual({f'{patched.FOLDER}/libxenlight.so.4.17'}, used)

    def test_the_switch_has_no_connection_to_the_whole_store(self):
        opened = self.xen.dom0.check(
            'ss -xp | grep "\\"valed\\"" | grep -c xenstored || true')
        self.assertEqual('0', opened.strip())
