# SPDX-License-Identifier: Apache-2.0
"""What the users of the running lab's message queue may read."""

import unittest

import amqp
import kombu

from clickos_lab import paths
from clickos_lab import settings

_HOST = 'clickos-lab'
_NOVA = ('conductor', 'scheduler', f'conductor.{_HOST}')
_COMPUTE = f'compute.{_HOST}'
_AGENTS = (f'clickos-agent.{_HOST}', f'neutron-vale-agent.{_HOST}')
_REST = ('neutron-vale-plugin', 'q-plugin', 'TACKER_CONDUCTOR')
#: The queues that each user reads, of those above.
_READS = {
    'nova': _NOVA, 'nova-compute': (_COMPUTE,), 'clickos-agent': _AGENTS,
    'neutron': _REST[:2], 'tacker': _REST[2:], 'clickos': ()}


class RabbitTest(unittest.TestCase):

    def test_each_user_reads_its_own_queues_only(self):
        queues = {*_NOVA, _COMPUTE, *_AGENTS, *_REST}
        for user, own in _READS.items():
            self.assertEqual(set(own),
                             {q for q in queues if self.reads(user, q)}, user)

    def reads(self, user, queue):
        """Look at a queue; the channel's end gives a message back."""
        lab = settings.Settings.load(paths.State())
        with kombu.Connection(
                hostname='127.0.0.1', port=lab.ports['rabbit'], userid=user,
                password=lab.passwords[f'rabbit_{user}']) as connection:
            try:
                connection.channel().basic_get(queue)
            except amqp.exceptions.AccessRefused:
                return False
        return True
