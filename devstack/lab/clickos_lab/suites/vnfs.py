# SPDX-License-Identifier: Apache-2.0
"""The suite ``vnfs``: every VNF of the catalog with real programs.

Each folder of vnfd-templates has a ``scenario.py`` with ``check(case, vnf)``.
It runs as root: the hosts are network namespaces. Arguments name VNFs, by
default all.
"""

import pathlib
import sys
import tempfile
import unittest
from xml.etree import ElementTree

from clickos_lab import apt
from clickos_lab import paths
from clickos_lab import processes
from clickos_lab.suites import unittests
from clickos_lab.vnf import csar
from clickos_lab.vnf import csars
from clickos_lab.vnf import testbed


def _traffic(name):
    """Return a test of one VNF; a scenario also swaps its configuration."""
    def test(self):
        with testbed.VnfTestbed(name) as vnf:
            vnf.scenario.check(self, vnf)
            self.assertGreater(vnf.swaps, 0, 'the scenario swaps nothing')
    return test


def _package(name):
    """Return a test of one VNF's package, configuration and picture."""
    def test(self):
        csars.check(name)
        with tempfile.TemporaryDirectory() as folder:
            csar.build(name, pathlib.Path(folder, 'vnf.csar'))
        graph = ElementTree.fromstring(csars.picture(name))  # nosec B314
        self.assertEqual('{http://www.w3.org/2000/svg}svg', graph.tag)
    return test


class Vnfs(unittest.TestCase):
    """Two tests for each VNF, added by :func:`main`."""


def main(names):
    processes.clean_up_at_signals()
    state = paths.State()
    state.create()
    apt.ensure(state, apt.VNF_PACKAGES)
    for name in names or csar.names():
        setattr(Vnfs, f'test_{name}', _traffic(name))
        setattr(Vnfs, f'test_{name}_package', _package(name))
    cases = unittest.defaultTestLoader.loadTestsFromTestCase(Vnfs)
    return unittests.run(cases)[0]


if __name__ == '__main__':
    sys.exit(main(sys.argv[1:]))
