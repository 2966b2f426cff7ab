# SPDX-License-Identifier: Apache-2.0
"""Ten thousand routers, one after the other, in one guest."""

from clickos_lab import bounds
from clickos_lab.suites import progress
from tests.xen import base
from tests.xen import guest

_ROUTERS = 64
_ROUNDS = 157           # times _ROUTERS: more than ten thousand
_CONFIG = 'Idle -> c :: Counter -> q :: Queue(100) -> Unqueue -> Discard;'
#: Where the script below puts what the guest's memory has left.
_FREE = '/run/free'
#: In each round a request for all routers, twice: to run, to be removed.
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
    xenstore-read {root}/memory >>{free}
done
"""


class RoutersTest(base.XenTest):
    """A guest of 8 MiB in which 10,048 routers were has lost no memory."""

    def test_installs_and_removals(self):
        one = guest.Guest(self.dom0, 'soak', 'pvh').create()
        script = _SOAK.format(root=one.path(), last=_ROUTERS - 1, free=_FREE,
                              rounds=_ROUNDS, config=_CONFIG)
        with progress.shown(self.dom0, f'of {_ROUNDS} rounds',
                            f'wc -l <{_FREE}'):
            self.dom0.check(script, timeout_s=_ROUNDS * 60)
        free_kib = [int(n) for n in self.dom0.check(f'cat {_FREE}').split()]
        self.assertEqual(_ROUNDS, len(free_kib))
        progress.note(f'{_ROUTERS * _ROUNDS:,} routers: {free_kib[0]:,} KiB '
                      f'free after the first {_ROUTERS}, at least '
                      f'{min(free_kib):,}, {free_kib[-1]:,} at the end')
        # The guest keeps the memory of the first round for later ones.
        bounds.hold('max_routers_lost_memory_kib',
                    free_kib[0] - free_kib[-1])
