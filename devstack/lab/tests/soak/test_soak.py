# SPDX-License-Identifier: Apache-2.0
"""Four hundred guests on one host; ten thousand routers in one guest."""

from clickos_lab.xen import qemu
from tests.xen import base
from tests.xen import guest
from tests.xen import test_many

_ROUTERS = 64
_ROUNDS = 157           # times _ROUTERS: more than ten thousand
_CONFIG = 'Idle -> c :: Counter -> q :: Queue(100) -> Unqueue -> Discard;'
#: In each round a wish for all routers at once, twice: to run, to be removed.
#: Prints what the guest's memory has left after each round.
_SOAK = r"""
set -e
wish() {{
    pairs=()
    for rid in $(seq 0 {last}); do
        pairs+=({root}/$rid/config/0 "$2" {root}/$rid/status Running
                {root}/$rid/generation $1)
        states+=({root}/$rid/state)
    done
    xenstore-write "${{pairs[@]}}"
    lab-wait 60 {root}/{last}/state "$3 $1" >/dev/null
    granted=$(xenstore-read "${{states[@]}}" | sort -u)
    [ "$granted" = "$3 $1" ]
    states=()
}}
for round in $(seq {rounds}); do
    wish $((2 * round - 1)) "{config}" Running
    wish $((2 * round)) "" Halted
    xenstore-read {root}/memory
done
"""


class ManyGuestsTest(test_many.ManyTest):

    guests = 400

    @classmethod
    def start_host(cls, contents):
        cls.host.boot_and_connect(
            qemu.Machine(memory_mib=6144, dom0_memory_mib=2048), contents)


class ManyRoutersTest(base.XenTest):
    """A guest of 8 MiB in which 10,048 routers were has lost no memory."""

    def test_installs_and_removals(self):
        one = guest.Guest(self.dom0, 'soak', 'pvh').create()
        script = _SOAK.format(root=one.path(), last=_ROUTERS - 1,
                              rounds=_ROUNDS, config=_CONFIG)
        out = self.dom0.check(script, timeout_s=_ROUNDS * 60)
        free_kib = [int(line) for line in out.split()]
        print(f'free KiB after each tenth: {free_kib[::_ROUNDS // 10]}',
              flush=True)
        self.assertEqual(_ROUNDS, len(free_kib))
        # What the first round leaves is kept for those to come.
        self.assertGreaterEqual(free_kib[-1], free_kib[0] - 4)
