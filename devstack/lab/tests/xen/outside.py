# SPDX-License-Identifier: Apache-2.0
"""Guests of cosmosd whose peers are programs of this machine."""

import os

from clickos_lab import apt
from clickos_lab.vnf import xen_bench
from clickos_lab.xen import qemu
from clickos_lab.xen import snapshot
from clickos_lab.xen import toolstack
from tests.xen import base


class OutsideTest(base.CosmosTest):
    """Tests on a host whose uplinks are interfaces of this machine.

    ``bench`` makes a guest of a VNF, with a network namespace on each vif.
    """

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        apt.ensure(cls.state, apt.VNF_PACKAGES)
        toolstack.start(cls.host, 'valed')
        cls.start_cosmosd()
        socket = cls.host.places.root / 'c'
        toolstack.bring(cls.host, socket)
        cls.bench = xen_bench.Host(cls.state, socket, cls.taps)
        cls.bench.connect()

    @classmethod
    def start_host(cls, contents):
        """Start it from the snapshot, with its uplinks."""
        cls.taps = [f'xv{os.getpid()}-{number}'
                    for number in range(qemu.Machine().uplinks)]
        cls.host.restore(snapshot.ensure(cls.places), contents, cls.taps)

    @classmethod
    def start_cosmosd(cls):
        """Start cosmosd; it has no image, since tests give it theirs."""
        toolstack.start(cls.host, 'cosmosd', installed=False)
