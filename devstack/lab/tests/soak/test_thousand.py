# SPDX-License-Identifier: Apache-2.0
"""A thousand guests at once, and what the last costs against the first.

They come from a small pool. cosmosd fills it again while no request waits,
so that as many guests run as were made before. The machine's clock counts
instructions, so that the ratios do not depend on what else runs beside it.
"""

import json
import statistics

from clickos_lab.suites import progress
from clickos_lab.xen import qemu
from clickos_lab.xen import toolstack
from tests.xen import base
from tests.xen import test_cosmos

_COSMOS = toolstack.command('cosmos')
_POOL = 10
#: As many as the pool has, one after the other, each with its answer.
_TAKE = f"""
until {_COSMOS} host | grep -qx 'pooled *{_POOL}'; do sleep 1; done
for i in $(seq {{first}} {{last}}); do
    {_COSMOS} -o json create --config /root/many.click --timeout 60 \
        --name many$i | tr -d '\\n'; echo
done
"""
#: Guests of a size of which the pool has none.
_NEW = f"""
for i in 1 2 3 4 5; do
    {_COSMOS} -o json create --config /root/many.click --timeout 60 \
        --memory 9 --name new | tr -d '\\n'; echo
    {_COSMOS} destroy new
done
"""
#: Prints those that do not answer, or are not destroyed.
_ASK = f"""
for i in $(seq {{guests}}); do
    [ "$({_COSMOS} read many$i c.count)" = 0 ] || echo many$i
done
"""
_DESTROY = f"""
for i in $(seq {{guests}}); do
    {_COSMOS} destroy many$i || echo many$i
done
"""
_RUNNING = "xenstore-list /local/domain | sed 1d | wc -l"
_FREE_KIB = "sed -n 's/^MemAvailable: *\\([0-9]*\\).*/\\1/p' /proc/meminfo"


class ThousandTest(base.CosmosTest):

    guests = 1000
    #: numbers of guests at which to report the median of ten creations
    told = (10, 100, 200, 400, 700, 1000)

    @classmethod
    def start_host(cls, contents):
        cls.host.boot_and_connect(
            qemu.Machine(memory_mib=12288, dom0_memory_mib=1536,
                         counted=True), contents)

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        toolstack.start(cls.host, 'valed')
        toolstack.start(cls.host, 'cosmosd', pool=_POOL, memory_mib=10240)
        cls.dom0.put_text('Idle -> c :: Counter -> Discard;',
                          '/root/many.click')
        # Before, domains have high numbers, in case that low ones rest.
        cls.dom0.check('sleep 75', timeout_s=120)

    def test_all_answer_and_nothing_is_left(self):
        free_kib = self._free_kib()
        with progress.shown(self.dom0, 'domains', _RUNNING):
            self._make_all()
            taken_kib = free_kib - self._free_kib()
            progress.note(f'{taken_kib / self.guests:.0f} KiB of dom0 for '
                          'each guest')
            self.assertEqual('', self._for_each(_ASK))
            self.assertEqual('', self._for_each(_DESTROY))
        toolstack.kill(self.host, 'cosmosd')
        toolstack.start(self.host, 'cosmosd')
        self.wait_for(lambda: not self.dom0.check(test_cosmos._LEFT), 120)
        progress.note(f'{self.guests:,} guests at once, each answered; '
                      'nothing left')

    def _make_all(self):
        first = None
        for last in range(_POOL, self.guests + 1, _POOL):
            pooled = self._created(_TAKE.format(first=last - _POOL + 1,
                                                last=last))
            if last in self.told:
                made = pooled, self._created(_NEW)
                first = first or made
                self._tell(last, made, first)

    def _tell(self, last, made, first):
        for kind, now, then in zip(('of the pool', 'new'), made, first):
            ratio = sum(now.values()) / sum(then.values())
            steps = ', '.join(f'{step} {ms:.1f}' for step, ms in now.items())
            progress.note(f'{last:,} guests, {kind}: '
                          f'{sum(now.values()):.1f} ms ({ratio:.2f}; {steps})')

    def _created(self, script):
        """Return the median of each step, in milliseconds."""
        out = self.dom0.check(script, timeout_s=1200)
        made = [dict(json.loads(line)['steps_ms'])
                for line in out.splitlines() if line]
        return {step: statistics.median(m.get(step, 0) for m in made)
                for step in made[0]}

    def _for_each(self, script):
        return self.dom0.check(script.format(guests=self.guests),
                               timeout_s=60 + 10 * self.guests)

    def _free_kib(self):
        return int(self.dom0.check(_FREE_KIB))
