# SPDX-License-Identifier: Apache-2.0
"""Four hundred guests on one host; ten thousand routers in one guest."""

import shlex

from clickos_lab.xen import qemu
from tests.xen import base
from tests.xen import guest
from tests.xen import test_many

_ROUTERS = 64
_ROUNDS = 157           # times _ROUTERS: more than ten thousand
_CONFIG = 'Idle -> c :: Counter -> q :: Queue(100) -> Unqueue -> Discard;'


class ManyGuestsTest(test_many.ManyTest):

    guests = 400

    @classmethod
    def start_host(cls, contents):
        cls.host.boot_and_connect(
            qemu.Machine(memory_mib=6144, dom0_memory_mib=2048), contents)


class ManyRoutersTest(base.XenTest):
    """A guest of 8 MiB in which 10,048 routers were has lost no memory.

    It has 6 MiB for all: it would fail if each router left 600 bytes.
    """

    def test_installs_and_removals(self):
        one = guest.Guest(self.dom0, 'soak', 'pvh').create()
        for number in range(1, 2 * _ROUNDS, 2):
            self._wish(one, number, _CONFIG, 'Running')
            self._wish(one, number + 1, '', 'Halted')

    def _wish(self, one, generation, text, state):
        """Write a wish for all routers at once and see it granted."""
        pairs = [word for rid in range(_ROUTERS) for key, value in (
            ('config/0', text), ('generation', str(generation)),
            ('status', 'Running'))
            for word in (one.path(f'{rid}/{key}'), value)]
        states = [one.path(f'{rid}/state') for rid in range(_ROUTERS)]
        granted = f'{state} {generation}'
        found = self.dom0.check(
            f'xenstore-write {shlex.join(pairs)} && '
            f'lab-wait 60 {states[-1]} "{granted}" >/dev/null && '
            f'xenstore-read {" ".join(states)}', timeout_s=90)
        self.assertEqual({granted}, set(found.splitlines()))
