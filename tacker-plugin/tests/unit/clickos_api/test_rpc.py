# SPDX-License-Identifier: Apache-2.0
"""Which bus the agent of a host is called on."""

from unittest import mock

from clickos_api import errors
from clickos_api import rpc
from clickos_api import states
import oslo_messaging

from tests.unit.clickos_api import base

_READ = states.Read('h')


class BusTest(base.TestCase):

    def setUp(self):
        super().setUp()
        self.conf.set_override('agent_transport_url',
                               'rabbit://u:p@queue/clickos-{host}',
                               'clickos_api')
        self.addCleanup(self.conf.clear_override, 'agent_transport_url',
                        'clickos_api')
        real = oslo_messaging.get_rpc_transport(self.conf, 'fake:///')
        patch = mock.patch.object(oslo_messaging, 'get_rpc_transport',
                                  autospec=True, return_value=real)
        self.get_transport = patch.start()
        self.addCleanup(patch.stop)

    def buses(self):
        return [call.kwargs['url']
                for call in self.get_transport.call_args_list]

    def test_each_agent_is_called_on_its_own_bus(self):
        agent = rpc.Agent(self.conf)
        self.agent.guests['s'] = {'h': 'v'}
        self.assertEqual('v', agent.handler_read('host1', 's', _READ))
        with self.assertRaises(errors.Silent):
            agent.handler_read('host2', 's', _READ)
        self.assertEqual(['rabbit://u:p@queue/clickos-host1',
                          'rabbit://u:p@queue/clickos-host2'], self.buses())

    def test_one_connection_serves_all_calls_to_a_host(self):
        agent = rpc.Agent(self.conf)
        self.agent.guests['s'] = {'h': 'v'}
        for _call in range(2):
            agent.handler_read('host1', 's', _READ)
        self.assertEqual(['rabbit://u:p@queue/clickos-host1'], self.buses())

    def test_a_name_cannot_leave_its_place_in_the_url(self):
        self.assertEqual('rabbit://u:p@queue/clickos-a%2F..%40b',
                         rpc.transport_url(self.conf, 'a/..@b'))

    def test_without_a_template_all_share_the_own_bus(self):
        self.conf.set_override('agent_transport_url', None, 'clickos_api')
        self.assertIsNone(rpc.transport_url(self.conf, 'host1'))
