# SPDX-License-Identifier: Apache-2.0
"""A thousand guests at once, and what the last costs against the first.

They come from a small pool. cosmosd fills it again while no request waits,
so that as many guests run as were made before. The machine's clock counts
instructions, so that the ratios do not depend on what else runs next to it.
"""

import json
import statistics

from clickos_lab import bounds
from clickos_lab.suites import progress
from clickos_lab.xen import qemu
from clickos_lab.xen import toolstack
from tests.xen import base
from tests.xen import test_cosmos

_COSMOS = toolstack.command('cosmos')
_POOL = 10
#: Memory of each, in MiB: the least, and a size of which the pool has none.
_POOLED, _NEW_MIB = 4, 5
#: What runs for a creation, besides Xen and cosmosd's client.
_DAEMONS = ('oxenstored', 'xenconsoled', 'cosmosd')
#: Prints the nanoseconds for which each has run. It starts no program
#: before the first two are read: cosmosd fills its pool meanwhile.
_SPENT = f"""
store=/proc/$(pidof {_DAEMONS[0]}) consoles=/proc/$(pidof {_DAEMONS[1]})
# cosmosd has a second process, for libxl's helpers.
tasks=$(pidof {_DAEMONS[2]} | sed 's,[0-9][0-9]*,/proc/&/task/*/schedstat,g')
spent() {{{{
    local first second
    read first _ <$store/schedstat
    read second _ <$consoles/schedstat
    echo $first $second $(cat $tasks |
        awk '{{{{ ns += $1 }}}} END {{{{ printf "%d", ns }}}}')
}}}}
"""
#: As many as the pool has, one after the other, each with its answer.
_TAKE = f"""{_SPENT}
until {_COSMOS} host | grep -qx 'pooled *{_POOL}'; do sleep 1; done
for i in $(seq {{first}} {{last}}); do
    spent
    {_COSMOS} -o json create --config /root/many.click --timeout 60 \
        --memory {_POOLED} --name many$i | tr -d '\\n'; echo
    spent
done
"""
#: Guests of a size of which the pool has none.
_NEW = f"""{_SPENT.format()}
for i in 1 2 3 4 5; do
    spent
    {_COSMOS} -o json create --config /root/many.click --timeout 60 \
        --memory {_NEW_MIB} --name new | tr -d '\\n'; echo
    spent
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
    #: bounds of the growth of a creation, of the pool and new
    growth = ()
    #: of the machine: 5.3 MiB a guest, dom0's and Xen's own
    memory_mib = 8192
    dom0_memory_mib = 1536

    @classmethod
    def start_host(cls, contents):
        cls.host.boot_and_connect(
            qemu.Machine(memory_mib=cls.memory_mib,
                         dom0_memory_mib=cls.dom0_memory_mib,
                         counted=True, root=cls.root()), contents)

    @classmethod
    def root(cls):
        """Return the name of dom0's root, None for the usual one."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        toolstack.start(cls.host, 'valed')
        toolstack.start(cls.host, 'cosmosd', pool=_POOL, pooled_mib=_POOLED,
                        memory_mib=cls.memory_mib,
                        max_guests=cls.guests + 2 * _POOL)
        cls.dom0.put_text('Idle -> c :: Counter -> Discard;',
                          '/root/many.click')
        # Before, domains have high numbers, in case that low ones rest.
        cls.dom0.check('sleep 75', timeout_s=120)

    def test_all_answer_and_nothing_is_left(self):
        free_kib = self._free_kib()
        with progress.shown(self.dom0, 'domains', _RUNNING):
            grown = self._make_all()
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
        for key, ratio in zip(self.growth, grown):
            bounds.hold(key, ratio)

    def _make_all(self):
        """Create all guests; return the growth of a creation, by kind.

        The growth is that of the last guests against the first ones: from
        the pool, and new.
        """
        first = made = None
        for last in range(_POOL, self.guests + 1, _POOL):
            pooled = self._created(_TAKE.format(first=last - _POOL + 1,
                                                last=last))
            if last in self.told:
                made = pooled, self._created(_NEW)
                first = first or made
                self._tell(last, made, first)
        return [_total_ms(now) / _total_ms(then)
                for now, then in zip(made, first)]

    def _tell(self, last, made, first):
        for kind, now, then in zip(('of the pool', 'new'), made, first):
            total_ms = _total_ms(now)
            parts = ', '.join(f'{part} {ms:.1f}' for part, ms in now.items())
            progress.note(f'{last:,} guests, {kind}: {total_ms:.1f} ms '
                          f'({total_ms / _total_ms(then):.2f}; {parts})')

    def _created(self, script):
        """Return the median of each step and daemon, in milliseconds."""
        lines = self.dom0.check(script, timeout_s=1200).splitlines()
        made = [dict(json.loads(answer)['steps_ms'])
                | _spent_ms(before, after)
                for before, answer, after in zip(*[iter(lines)] * 3)]
        return {step: statistics.median(m.get(step, 0) for m in made)
                for step in made[0]}

    def _for_each(self, script):
        return self.dom0.check(script.format(guests=self.guests),
                               timeout_s=60 + 10 * self.guests)

    def _free_kib(self):
        return int(self.dom0.check(_FREE_KIB))


def _total_ms(made):
    """Return the time of all steps of a creation."""
    return sum(ms for step, ms in made.items() if step not in _DAEMONS)


def _spent_ms(before, after):
    """Return the time of each daemon between two lines of the script."""
    spent_ns = (int(b) - int(a) for a, b in zip(before.split(), after.split()))
    return {daemon: ns / 1e6 for daemon, ns in zip(_DAEMONS, spent_ns)}
