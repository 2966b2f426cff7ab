# SPDX-License-Identifier: Apache-2.0
"""Four hundred guests at once on one host, made by ``xl``."""

from clickos_lab.suites import progress
from clickos_lab.xen import qemu
from tests.xen import test_many


class ManyGuestsTest(test_many.ManyTest):

    guests = 400

    @classmethod
    def start_host(cls, contents):
        cls.host.boot_and_connect(
            qemu.Machine(memory_mib=6144, dom0_memory_mib=2048), contents)

    def test_each_answers_after_the_last_has_booted(self):
        with progress.shown(self.dom0, f'of {self.guests} guests',
                            "xenstore-list /local/domain | sed 1d | wc -l"):
            super().test_each_answers_after_the_last_has_booted()
        progress.note(f'{self.guests} guests, each answered a ping')
