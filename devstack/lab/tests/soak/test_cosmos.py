# SPDX-License-Identifier: Apache-2.0
"""A thousand guests made and destroyed by one cosmosd leave nothing."""

import json

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
done
"""
#: What cosmosd, valed and the store hold.
_HELD = """
for daemon in cosmosd valed xenstored; do
    ls /proc/$(pidof $daemon)/fd | wc -l
done
xenstore-ls / | wc -l
ls {folder}/state/guests {folder}/state/console | wc -l
"""


class CyclesTest(base.XenTest):

    cycles, rounds = 100, 10

    @classmethod
    def add_files(cls, contents):
        super().add_files(contents)
        toolstack.build(cls.state, cls.places)
        toolstack.add(cls.state, contents)

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        toolstack.start(cls.host, 'valed')
        toolstack.start(cls.host, 'cosmosd')
        cls.dom0.check('lab-net bridge br0')
        cls.dom0.put_text(_CONFIG, '/root/soak.click')

    def test_nothing_is_left(self):
        self._round(2)
        before = self._held()
        for _ in range(self.rounds):
            self._round(self.cycles)
        self.assertEqual(before, self._held())

    def _round(self, cycles):
        self.dom0.check(_CYCLE.format(
            cycles=cycles, cosmos=toolstack.command('cosmos')),
            timeout_s=cycles * 20)

    def _held(self):
        self.wait_for(lambda: not self.dom0.check(test_cosmos._LEFT), 60)
        listed = self.dom0.check(
            toolstack.command('cosmos', '-o', 'json', 'list'))
        self.assertEqual([], json.loads(listed))
        return self.dom0.check(_HELD.format(folder=toolstack.FOLDER)).split()
