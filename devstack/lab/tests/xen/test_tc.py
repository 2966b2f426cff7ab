# SPDX-License-Identifier: Apache-2.0
"""Policies of the switch on a vif of the stock netback."""

import json

from clickos_lab import paths
from clickos_lab.xen import modules
from clickos_lab.xen import toolstack
from tests.xen import base
from tests.xen import guest
from tests.xen import test_netback

_SCRIPT = 'etc/xen/scripts/vif-filtered'
_SETTINGS = f'VALE_TC=({toolstack.FOLDER}/vale-tc)\nVIF_SCRIPT=vif-lab\n'
_MODULES = ('sch_ingress', 'cls_bpf')
_NUMBER = 9
_IP, _MAC = test_netback.address_of(_NUMBER), test_netback.mac_of(_NUMBER)
#: Answers, and sends a hundred packets each with own addresses, with another's
#: IP address, and with another's MAC address.
_LIAR = test_netback.answers(_NUMBER) + ''.join(f"""
RatedSource(LENGTH 20, RATE 50, LIMIT 100)
  -> UDPIPEncap({ip}, 9, 10.1.0.1, 9)
  -> EtherEncap(0x0800, {mac}, ff:ff:ff:ff:ff:ff) -> Queue -> ToDevice(0);
""" for ip, mac in ((_IP, _MAC), ('10.1.0.77', _MAC),
                    (_IP, '02:00:00:00:00:77')))
#: Prints how many datagrams came to ports without a program.
_NO_PORTS = "ip netns exec near awk '/^Udp:/ {n = $3} END {print n}' " \
    '/proc/net/snmp'


@base.slow
class TcTest(base.XenTest):
    """A guest on a Linux bridge."""

    kind = 'pvh'

    @classmethod
    def add_files(cls, contents):
        super().add_files(contents)
        toolstack.build(cls.state, cls.places)
        toolstack.add(cls.state, contents, ('vale-tc',))
        contents.add(paths.REPO / 'packaging/valed/root' / _SCRIPT,
                     f'/{_SCRIPT}', 0o755)
        contents.add_text(_SETTINGS, '/etc/default/vale')
        for path in modules.closure(cls.places, _MODULES):
            contents.add(path, f'/root/{path.name}')

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.dom0.check(
            'set -e; lab-net bridge br0; '
            'lab-net endpoint br0 near 10.1.0.1/24; '
            'mountpoint -q /sys/fs/bpf || mount -t bpf bpf /sys/fs/bpf; '
            + '; '.join(f'insmod /root/{path.name}' for path
                        in modules.closure(cls.places, _MODULES)))

    def _create(self, text, more=f',ip={_IP}'):
        made = guest.Guest(self.dom0, 'liar', self.kind,
                           'vif = ["script=vif-filtered,bridge=br0,'
                           f'mac={_MAC}{more}"]').create(watched=False)
        self.addCleanup(self.dom0.run, 'xl destroy liar')
        self.assertEqual(('Running', ''), made.install(text))
        self.vif = f'vif{made.domid}.0'
        return made

    def _tc(self, arguments):
        return self.dom0.check(f'{toolstack.FOLDER}/vale-tc {arguments}')

    def _shown(self):
        return json.loads(self._tc(f'show {self.vif}'))

    def _set(self, **policy):
        document = {'mac': _MAC, 'allowed': [{'ip': f'{_IP}/32'}], **policy}
        self.dom0.put_text(json.dumps(document), '/root/policy.json')
        self._tc(f'set {self.vif} --policy /root/policy.json')

    def _answers(self, patience_s=30):
        return self.dom0.run('ip netns exec near ping -c 3 -i 0.2 '
                             f'-W {patience_s} {_IP}').status == 0

    def _is_silent(self):
        return not self._answers(2)

    def test_a_liar_is_silent_and_a_policy_follows_its_guest(self):
        before = int(self.dom0.check(_NO_PORTS))
        made = self._create(_LIAR)
        self.wait_for(
            lambda: self._shown()['counters']['dropped_spoof'] == 200)
        self.assertTrue(self._answers())
        self.wait_for(
            lambda: int(self.dom0.check(_NO_PORTS)) - before == 100)
        self._set(rules=[])
        self.assertTrue(self._is_silent())
        self._set(rules=[{'direction': 'ingress', 'protocol': 1,
                          'remote': '10.1.0.1/32'}])
        self.assertTrue(self._answers())
        self.assertGreater(self._shown()['rules'][0]['hits'], 0)
        self._set(offload={'guest': ['drop src 10.1.0.1 proto 1']})
        self.assertTrue(self._is_silent())
        hits = self._shown()['offload']['guest'][0]['hits']
        self.assertEqual(3, hits)
        made.destroy()
        self.wait_for(lambda: not self.dom0.check(
            'find /run/vale-tc /sys/fs/bpf/vale-tc -mindepth 1'))

    def test_a_document_that_tc_cannot_express_makes_no_vif(self):
        self.dom0.put_text(json.dumps({'mac': _MAC, 'vlan_tags': True}),
                           '/etc/vale/vifs/liar-0.json')
        self.addCleanup(self.dom0.check, 'rm /etc/vale/vifs/liar-0.json')
        made = guest.Guest(self.dom0, 'liar', self.kind,
                           'vif = ["script=vif-filtered,bridge=br0"]')
        with self.assertRaisesRegex(Exception, 'vlan_tags'):
            made.create(watched=False)
