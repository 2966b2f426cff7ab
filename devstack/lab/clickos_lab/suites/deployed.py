# SPDX-License-Identifier: Apache-2.0
"""The suite ``deployed``: every VNF of the catalog as a tenant deploys it.

``python -m clickos_lab.suites.deployed [--host KIND] [VNF ...]`` starts a lab
with a host of the kind, ``process`` by default or ``xen``. Tacker deploys each
package as shipped, or those that are named. The judge of its ``scenario.py``
decides, as in the suite ``vnfs``. A new folder of vnfd-templates is a new
test.
"""

import argparse
import os
import sys
import unittest

from clickos_lab import apt
from clickos_lab.config import hosts
from clickos_lab import lab as _lab
from clickos_lab import paths
from clickos_lab import prepare
from clickos_lab.suites import on_lab
from clickos_lab.suites import unittests
from clickos_lab.vnf import cloud_bench
from clickos_lab.vnf import csar

#: for each test
_LIMIT_S = 600
#: {kind: (its host, what the lab has besides the first process host)}
KINDS = {'process': (hosts.PROCESS, ()), 'xen': (hosts.XEN, (hosts.XEN,))}


def run(state, kind='process', names=()):
    """Run the suite on a lab that is up.

    :param names: of VNFs, by default all
    :returns: the exit status
    """
    sys.path.append(str(paths.REPO / 'devstack/lab/limits'))
    import time_limit       # the path leads there by now
    time_limit.arm(_LIMIT_S)
    return unittests.run(tests(
        cloud_bench.Cloud(state, KINDS[kind][0]), names))[0]


def tests(cloud, names=()):
    """Return the tests of VNFs, by default one for each of the catalog."""
    cases = type('Deployed', (unittest.TestCase,), {
        f'test_{name}': _test(cloud, name) for name in names or csar.names()})
    return unittest.defaultTestLoader.loadTestsFromTestCase(cases)


def _test(cloud, name):
    """Return a test of one VNF."""
    def test(self):
        with cloud_bench.CloudBench(name, cloud) as vnf:
            vnf.scenario.check(self, vnf)
            self.assertGreater(vnf.swaps, 0, 'the scenario swaps nothing')
    return test


def prepare_scenarios(state):
    """Install the programs of the scenarios."""
    apt.ensure(state, apt.VNF_PACKAGES)


def main(words):
    """Start the lab, run the tests, stop the lab; return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.partition('\n')[0])
    parser.add_argument('--host', choices=sorted(KINDS), default='process')
    parser.add_argument('names', nargs='*', metavar='VNF')
    wanted = parser.parse_args(words)
    state = paths.State()

    def ready():
        prepare_scenarios(state)
        if wanted.host == 'xen':
            prepare.xen(state)
    lab = _lab.Lab(state, KINDS[wanted.host][1])
    return on_lab.run(lab, lambda: run(state, wanted.host, wanted.names),
                      ready)


if __name__ == '__main__':
    os.umask(0o077)
    sys.exit(main(sys.argv[1:]))
