# SPDX-License-Identifier: Apache-2.0
"""Every VNF of the catalog as a guest, with the scenario of its folder."""

from clickos_lab.vnf import csar
from clickos_lab.vnf import xen_bench
from tests.xen import base
from tests.xen import outside

#: Those that are not left to ``make soak PARTS=xen``.
_QUICK = ('firewall', 'mirror', 'nat')


class VnfsTest(outside.OutsideTest):
    """A test for each VNF, added below."""


def _traffic(name):
    """Return a test of one VNF; a scenario also swaps its configuration."""
    def test(self):
        with xen_bench.XenBench(name, self.bench) as vnf:
            vnf.scenario.check(self, vnf)
            self.assertGreater(vnf.swaps, 0, 'the scenario swaps nothing')
    return test if name in _QUICK else base.slow(test)


for _name in csar.names():
    setattr(VnfsTest, f'test_{_name.replace("-", "_")}', _traffic(_name))
