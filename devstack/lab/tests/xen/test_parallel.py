# SPDX-License-Identifier: Apache-2.0
"""Many creations at once, most of them given up: nothing is left."""

import collections
import json

from clickos_lab.xen import toolstack
from tests.xen import base
from tests.xen import test_cosmos

_COSMOS = toolstack.command('cosmos')
_CONFIG = 'Idle -> c :: Counter -> Discard;'
#: Prints what each client says last, and its status.
_CREATE = f"""
cd /root
for i in $(seq {{guests}}); do
    ({_COSMOS} create --name many$i --config /root/many.click --memory 4 \
        --vif port=many$i --timeout $((i % {{longest_s}} + 1)) 2>&1 |
        tail -1 >many$i.out; echo ${{{{PIPESTATUS[0]}}}} >>many$i.out) &
done
wait
for i in $(seq {{guests}}); do tr '\\n' ' ' <many$i.out; echo; done
rm many*.out
"""
_DESTROY = f"""
for i in $(seq {{guests}}); do {_COSMOS} destroy many$i & done
wait
"""
#: Takes away what the store has of a domain, as a destruction does before the
#: domain itself goes.
_HALVE = """
xenstore-rm /local/domain/{domid}
xenstore-rm /libxl/{domid}
xenstore-rm /vm/{uuid}
"""


class ParallelCase(base.CosmosTest):
    """Rounds of creations, each of which has to leave nothing."""

    guests = 12
    #: The longest timeout of a creation.
    longest_s = 10
    #: What a client may get.
    kinds = {'created', 'timeout'}

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        toolstack.start(cls.host, 'valed')
        toolstack.start(cls.host, 'cosmosd')
        cls.dom0.put_text(_CONFIG, '/root/many.click')

    def round(self):
        """Return how many clients got which answer."""
        out = self.dom0.check(_CREATE.format(
            guests=self.guests, longest_s=self.longest_s), timeout_s=600)
        answers = collections.Counter(
            self._kind(line) for line in out.splitlines())
        self.assertLessEqual(set(answers), self.kinds, out)
        self.assertIn('timeout', answers)
        self.dom0.check(_DESTROY.format(guests=self.guests), timeout_s=600)
        self.assert_nothing_left()
        return answers

    @staticmethod
    def _kind(line):
        """Return the kind of a client's answer, or its line."""
        if line.endswith(' 0 '):
            return 'created'
        if 'timeout: ' in line and line.endswith(' 1 '):
            return 'timeout'
        if 'create: libxl error' in line and 'timed out' in line:
            return 'slow host'
        return line

    def assert_nothing_left(self):
        self.wait_for(lambda: not self.dom0.check(test_cosmos._LEFT), 60)
        listed = self.dom0.check(f'{_COSMOS} -o json list')
        self.assertEqual([], json.loads(listed))
        self.assertEqual('', self.dom0.check(
            f'find {toolstack.FOLDER}/state/guests '
            f'{toolstack.FOLDER}/state/console -type f'))
        ports = toolstack.command('vale-ctl', 'ports')
        self.assertNotIn('many', self.dom0.check(ports))
        self.assertEqual('0\n', self.dom0.check(
            'xenstore-list /local/domain'))


class ParallelTest(ParallelCase):

    @base.slow
    def test_creations_that_are_given_up(self):
        self.round()

    @base.slow
    def test_a_half_domain_is_undone(self):
        for phase, state in (('partial', None), ('complete', 'crashed')):
            with self.subTest(phase=phase):
                self._halve(phase)
                listed = json.loads(
                    self.dom0.check(f'{_COSMOS} -o json list'))
                self.assertEqual([state] if state else [],
                                 [guest['state'] for guest in listed])
                self.assertEqual('', self.dom0.check(test_cosmos._LEFT))
                self.dom0.check(f'{_COSMOS} destroy half')
                self.assert_nothing_left()

    def _halve(self, phase):
        """Leave a guest as a killed cosmosd may; start another one."""
        self.dom0.check(f'{_COSMOS} create --name half --memory 4 '
                        '--config /root/many.click --vif port=half '
                        '--timeout 60')
        info = json.loads(self.dom0.check(f'{_COSMOS} -o json info half'))
        toolstack.kill(self.host, 'cosmosd')
        self.dom0.check(_HALVE.format(**info))
        self.dom0.check(
            f"sed -i 's/\"phase\": \"complete\"/\"phase\": \"{phase}\"/' "
            f'{toolstack.FOLDER}/state/guests/{info["uuid"]}.json')
        toolstack.start(self.host, 'cosmosd')
