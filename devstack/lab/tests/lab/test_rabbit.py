# SPDX-License-Identifier: Apache-2.0
"""What the users of the running lab's message queue may read and call.

The second process host plays an attacker, with all credentials that it has.
"""

import contextlib
import unittest
import uuid

import amqp
from clickos_client import rpc
import kombu
from oslo_config import cfg
import oslo_messaging

from clickos_lab.config import hosts
from clickos_lab.config import rabbit
from clickos_lab import paths
from clickos_lab import settings

_HOST = hosts.PROCESS.name
_VICTIM, _OWN = (rabbit.vhost(host) for host in hosts.PROCESSES)
_BUSES = ('nova', 'neutron', 'tacker', _VICTIM, _OWN)
#: Queues of each bus, and the users that read them.
_QUEUES = {
    'nova': {'conductor': {'nova'}, 'scheduler': {'nova'},
             f'conductor.{_HOST}': {'nova'},
             f'compute.{_HOST}': {'nova-compute', 'nova-compute-2'}},
    'neutron': {'neutron-vale-plugin': {'neutron'}, 'q-plugin': {'neutron'},
                f'neutron-vale-agent.{_HOST}': {'clickos-agent'}},
    'tacker': {'TACKER_CONDUCTOR': {'tacker'}},
    _VICTIM: {f'clickos-agent.{_HOST}': {'clickos-agent'}}}
_USERS = ('nova', 'nova-compute', 'nova-compute-2', 'neutron', 'tacker',
          'clickos', 'clickos-agent', 'clickos-agent-2')
_HOSTILE = ('nova-compute-2', 'clickos-agent-2')
_REFUSED = (amqp.exceptions.AccessRefused, amqp.exceptions.NotAllowed)


class RabbitTest(unittest.TestCase):

    def setUp(self):
        self._lab = settings.Settings.load(paths.State())

    def url(self, user, bus):
        password = self._lab.passwords[f'rabbit_{user}']
        bus = '' if bus == 'nova' else bus
        return f'{user}:{password}@127.0.0.1:{self._lab.ports["rabbit"]}/{bus}'

    @contextlib.contextmanager
    def channel(self, user, bus):
        with kombu.Connection(f'amqp://{self.url(user, bus)}') as connection:
            yield connection.channel()

    def reads(self, user, bus, queue):
        """Look at a queue; the channel's end gives a message back."""
        try:
            with self.channel(user, bus) as channel:
                channel.basic_get(queue)
        except _REFUSED:
            return False
        return True

    def test_each_user_reads_its_own_queues_only(self):
        for bus, queues in _QUEUES.items():
            for queue, readers in queues.items():
                self.assertEqual(readers, {
                    user for user in _USERS if self.reads(user, bus, queue)},
                    f'{bus}: {queue}')

    def test_a_host_enters_no_bus_of_another_host(self):
        self.assertEqual(
            {('nova-compute-2', 'nova'), ('clickos-agent-2', 'neutron'),
             ('clickos-agent-2', _OWN)},
            {(user, bus) for user in _HOSTILE for bus in _BUSES
             if self.enters(user, bus)})

    def enters(self, user, bus):
        try:
            with self.channel(user, bus):
                return True
        except _REFUSED:
            return False

    def test_only_clickos_api_calls_the_agent_of_a_host(self):
        self.assertEqual('no-such-guest',
                         self.call('clickos', _VICTIM)['error']['code'])
        for user in _HOSTILE:
            for bus in ('nova', 'neutron', _OWN):
                with self.assertRaises((
                        *_REFUSED, oslo_messaging.MessagingException),
                        msg=f'{user} on {bus}'):
                    self.call(user, bus)

    def call(self, user, bus):
        """Call the first host's agent."""
        with self.channel(user, bus):
            pass    # oslo.messaging would try for ever to enter
        transport = oslo_messaging.get_rpc_transport(
            cfg.CONF, url=f'rabbit://{self.url(user, bus)}')
        self.addCleanup(transport.cleanup)
        client = oslo_messaging.get_rpc_client(
            transport, oslo_messaging.Target(
                topic=rpc.TOPIC, server=_HOST, version=rpc.OLDEST),
            timeout=3, retry=0)
        return client.call({}, 'handler_list', server_id=str(uuid.uuid4()))

    def test_a_host_receives_no_hints_of_another_host(self):
        with self.channel('clickos-agent-2', 'neutron') as channel:
            name = channel.queue_declare(
                f'neutron-vale-agent.{hosts.SECOND.name}', passive=True).queue
            channel.queue_bind(name, 'neutron-vale',
                               f'neutron-vale-agent.{hosts.SECOND.name}')
            for key in (f'neutron-vale-agent.{_HOST}', 'neutron-vale-plugin',
                        '#'):
                with self.assertRaises(amqp.exceptions.AccessRefused, msg=key):
                    with self.channel('clickos-agent-2', 'neutron') as other:
                        other.queue_bind(name, 'neutron-vale', key)

    def test_a_host_sends_into_no_queue_of_neutron_by_its_name(self):
        with self.channel('clickos-agent-2', 'neutron') as channel:
            channel.confirm_select()
            with self.assertRaises(amqp.exceptions.AccessRefused):
                channel.basic_publish_confirm(
                    amqp.Message('{}'), exchange='', routing_key='q-plugin')
