# SPDX-License-Identifier: Apache-2.0
"""A thousand guests made and destroyed by one cosmosd leave nothing."""

import json

from clickos_lab import bounds
from clickos_lab.suites import progress
from clickos_lab.xen import toolstack
from tests.xen import base
from tests.xen import test_cosmos

_CONFIG = 'Idle -> c :: Counter -> Discard;'
#: One cycle; every cycle has both kinds of vif.
_CYCLE = """
for i in $(seq {cycles}); do
    {cosmos} create --name soak --config /root/soak.click --timeout 60 \
        --vif port=soak --vif bridge=br0 >/dev/null || exit 1
    {cosmos} destroy soak || exit 1
    echo >>/run/cycles
done
"""
#: What processes hold, what the store and the folders have, what Xen has
#: free (libxl caches a domain's last pages for the next one's), and which
#: event channels and grants dom0 uses.
_HELD = """
for daemon in cosmosd valed oxenstored xenconsoled; do
    # cosmosd has helpers that are processes.
    for what in fd task; do
        echo $daemon $(for pid in $(pidof $daemon); do ls /proc/$pid/$what
            done | wc -l) $what
    done
done
count=0
for exe in /proc/[0-9]*/exe; do [ ! -e $exe ] || count=$((count + 1)); done
echo processes $count
echo keys $(xenstore-ls / | wc -l)
echo files $(ls {folder}/state/guests {folder}/state/console /var/lib/xen \
    /run /run/xen /tmp | wc -l)
echo channels $(grep -c ' xen-' /proc/interrupts)
echo interfaces $(ls /sys/class/net | wc -l)
echo Xen $(xl info free_memory) MiB
"""
_RESIDENT = """
for daemon in {daemons}; do
    for pid in $(pidof $daemon); do cat /proc/$pid/status; done |
        awk '/^VmRSS:/ {{kib += $2}} END {{print kib}}'
done
"""


class CyclesTest(base.CosmosTest):

    cycles = 1000
    #: Daemon: bound of its growth in a cycle of the second half. In the
    #: first, cosmosd's allocator gets a place for an image in each of its
    #: arenas. Debian's oxenstored keeps the connection of each domain that
    #: has gone (adr/0018).
    growth = {**dict.fromkeys(('cosmosd', 'valed', 'xenconsoled'),
                              'max_cycle_daemon_growth_kib'),
              'oxenstored': 'max_cycle_store_growth_kib'}

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        toolstack.start(cls.host, 'valed')
        toolstack.start(cls.host, 'cosmosd')
        cls.dom0.check('lab-net bridge br0')
        cls.dom0.put_text(_CONFIG, '/root/soak.click')

    def test_nothing_is_left(self):
        # The daemons keep memory for the next guest; let them take it first.
        self._cycle(20)
        held = self._held()
        with progress.shown(self.dom0, f'of {self.cycles} cycles',
                            'sed 1,20d /run/cycles | wc -l'):
            self._cycle(self.cycles // 2)
            resident = self._resident()
            self._cycle(self.cycles // 2)
        self.assertEqual(held, self._held())
        grown = [now - then for then, now in zip(
            resident, self._resident(), strict=True)]
        progress.note(f'{self.cycles:,} cycles; in the second half '
                      f'{", ".join(self.growth)} grew by {grown} KiB')
        for kib, (daemon, key) in zip(grown, self.growth.items(),
                                      strict=True):
            with self.subTest(daemon):
                bounds.hold(key, kib / (self.cycles // 2))

    def _cycle(self, cycles):
        self.dom0.check(_CYCLE.format(
            cycles=cycles, cosmos=toolstack.command('cosmos')),
            timeout_s=cycles * 20)

    def _held(self):
        self.wait_for(lambda: not self.dom0.check(test_cosmos._LEFT), 60)
        listed = self.dom0.check(
            toolstack.command('cosmos', '-o', 'json', 'list'))
        self.assertEqual([], json.loads(listed))
        return self.dom0.check(_HELD.format(folder=toolstack.FOLDER))

    def _resident(self):
        script = _RESIDENT.format(daemons=' '.join(self.growth))
        return [int(kib) for kib in self.dom0.check(script).split()]
