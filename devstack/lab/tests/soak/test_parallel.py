# SPDX-License-Identifier: Apache-2.0
"""Two hundred creations at once, ten times, most of them given up."""

from clickos_lab.suites import progress
from clickos_lab.xen import qemu
from tests.xen import test_parallel


class ParallelSoak(test_parallel.ParallelCase):

    guests = 200
    longest_s = 40
    rounds = 10
    #: libxl gives xenconsoled 10 s; many clients may take longer.
    kinds = {'created', 'timeout', 'slow host'}

    @classmethod
    def start_host(cls, contents):
        cls.host.boot_and_connect(
            qemu.Machine(memory_mib=4096, dom0_memory_mib=1536), contents)

    def test_every_client_is_answered(self):
        for count in range(1, self.rounds + 1):
            answers = self.round()
            progress.note(f'round {count}: ' + ', '.join(
                f'{number} {kind}' for kind, number in answers.items()))
