# SPDX-License-Identifier: Apache-2.0
"""Interfaces of a domain come and go while it runs."""

import json

import cosmos_client

from clickos_lab.xen import toolstack
from tests.xen import test_net

_IDLE = 'Idle -> Discard;'
_LATE = 1


class PlugTest(test_net.ValePorts):
    """A guest of cosmosd, and a client in dom0."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        toolstack.start(cls.host, 'cosmosd')
        socket = cls.host.places.root / 'c'
        toolstack.bring(cls.host, socket)
        cls.client = cosmos_client.CosmosClient(socket, 120)
        cls.dom0.put_text(_IDLE, '/tmp/idle.click')
        made = cls.dom0.check(toolstack.command(
            'cosmos', '-o', 'json', 'create', '--name', 'plug', '--config',
            '/tmp/idle.click', '--memory', 8, '--timeout', 60, '--vif',
            'port=first,segment=1'), timeout_s=90)
        cls.uuid = json.loads(made)['uuid']

    def _ports(self):
        ports = json.loads(self._vale('-o json ports vale0'))
        return {port['port'] for port in ports} - {'client'}

    def _install(self, text):
        self.client.call('router-install', uuid=self.uuid, config=text,
                         config_name='plug.click', timeout_ms=60000)

    def test_an_interface_comes_goes_and_comes_with_another_address(self):
        domid = self.client.call('info', uuid=self.uuid)['domid']
        for number in (1, 2):
            self.client.call('vif-plug', uuid=self.uuid, vif={
                'devid': _LATE, 'switch': 'vale0', 'port': 'late',
                'segment': 5, 'mac': test_net.mac(number), 'mtu': 1500,
                'slots': 128, 'port_security': False})
            self.assertEqual({'first', 'late'}, self._ports())
            self.dom0.check('lab-wait 60 /local/domain/0/backend/vale/'
                            f'{domid}/{_LATE}/state 4', timeout_s=90)
            self._install(test_net.responder(number).replace(
                'Device(0)', f'Device({_LATE})'))
            self.ping('c', test_net.ip(number))
            self.client.call('vif-unplug', uuid=self.uuid, devid=_LATE)
            self.assertEqual({'first'}, self._ports())
            left = self.dom0.run(
                f'xenstore-ls -f | grep -E "vale/({domid}/)?{_LATE} "')
            self.assertEqual('', left.out)
            # The configuration that used it runs on; the next cannot.
            read = self.client.call('handler-read', uuid=self.uuid,
                                    name='udp.count')
            self.assertEqual('0', read['value'].strip())
            self._install(_IDLE)
            with self.assertRaises(cosmos_client.CosmosError) as refused:
                self._install(test_net.responder(number).replace(
                    'Device(0)', f'Device({_LATE})'))
            self.assertIn(f'device {_LATE}', str(refused.exception))
        self.assertEqual(domid, self.client.call(
            'info', uuid=self.uuid)['domid'])
