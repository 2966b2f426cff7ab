# SPDX-License-Identifier: Apache-2.0
"""Guests of Xen that let the switch decide their packets."""

import dataclasses
import json

from clickos_lab.vnf import xen_bench
from clickos_lab.xen import image
from clickos_lab.xen import toolstack
from tests.xen import base
from tests.xen import outside

_COUNT = 20
#: Sends datagrams to a port of a server.
_SEND = f'for n in $(seq {_COUNT}); do ' \
    'echo $n >/dev/udp/{server}/{port}; done'
_RULES = 'deny udp dst port 53, allow all'
#: A guest's node, which the store bounds to 2,048 bytes, and the reason.
_HOSTILE = {
    r'101\x0aallow\x0a': 'rule 0: rule: expected pass, drop or redirect',
    r'102\x0adrop src 2001:db8::/129\x0a': 'rule 0: src: expected a prefix',
    r'103\x0adrop ip6 src 10.0.0.1\x0a': 'src: expected an IPv6 address',
    '104' + r'\x0adrop' * 65: 'rules: more than 64, the limit',
    '105' + r'\x0adrop src 2001:db8:1:2:3:4:5555:6666' * 54:
        'the limit is 1900'}
_WRITES = 100


class _Router6(xen_bench.XenBench):
    """The catalog's router with rules of IPv6 in front."""

    def configuration(self):
        made = super().configuration()
        text = made.config.replace(
            'FromDevice(0)', 'FromDevice(0) -> o :: ClickOSOffload(0, '
            'drop ip6 proto 17 dport 53, pass)')
        return dataclasses.replace(made, config=text)


@base.slow
class OffloadTest(outside.OutsideTest):

    def _send(self, vnf, port, server):
        """Send datagrams from left."""
        vnf.run('left', 'bash', '-c', _SEND.format(server=server, port=port))

    def _tables(self):
        """Return the switch's tables."""
        return json.loads(self.dom0.check(toolstack.command(
            'vale-ctl', '-o', 'json', 'offload', 'show')))

    def _hits(self, port):
        """Return the switch's hits of the rules at a port."""
        rows = [rule['hits'] for table in self._tables()
                if table['port'] == port for rule in table['rules']]
        return rows

    def _firewall(self, vnf):
        """Let the switch drop for the firewall."""
        vnf.control.write('fw.config', _RULES)
        vnf.control.write('fw.offload', 'true')
        self._active(vnf)

    def _active(self, vnf):
        self.wait_for(lambda: vnf.control.read('fw.offload_state') ==
                      '0 active\n1 active')

    def _denied(self, vnf, count):
        """Wait until the firewall has counted a number of datagrams."""
        self.wait_for(lambda: vnf.control.read('fw.hits').startswith(
            f'{count}\tdeny'))

    def test_a_firewall_lets_the_switch_drop(self):
        with xen_bench.XenBench('firewall', self.bench, image.FULL) as vnf:
            server = vnf.address('right')
            self._firewall(vnf)
            self.assertEqual(3, vnf.ping('left', server, 3))
            before = vnf.count('received.count')
            self._send(vnf, 53, server)
            self._denied(vnf, _COUNT)
            self.assertEqual(before, vnf.count('received.count'))
            self.assertEqual([_COUNT], self._hits('vif0'))
            # Without the switch the guest drops them, and counts on.
            vnf.control.write('fw.offload', 'false')
            self.wait_for(lambda: not self._tables())
            self._send(vnf, 53, server)
            self._denied(vnf, 2 * _COUNT)
            self._check_daemons(vnf, server)
            vnf.swap()
            self._active(vnf)
        self.wait_for(lambda: not self._tables())

    def _check_daemons(self, vnf, server):
        """A restart of each daemon gives the switch the rules again."""
        vnf.control.write('fw.offload', 'true')
        self._active(vnf)
        toolstack.kill(self.host, 'cosmosd')
        self._send(vnf, 53, server)
        self.start_cosmosd()
        self._denied(vnf, 3 * _COUNT)
        toolstack.kill(self.host, 'valed')
        toolstack.start(self.host, 'valed')
        # In a cloud clickos-agent does it.
        self.bench.connect()
        self.wait_for(lambda: self._hits('vif0') == [0], 60)
        self.wait_for(lambda: vnf.ping('left', server, 1), 60)
        self._send(vnf, 53, server)
        self._denied(vnf, 4 * _COUNT)
        self.assertEqual([_COUNT], self._hits('vif0'))

    def test_packets_of_ip6_are_decided(self):
        with _Router6('router', self.bench, image.FULL) as vnf:
            for host, number in (('left', 1), ('right', 2)):
                network = f'2001:db8:{number}::'
                vnf.run(host, 'ip', 'address', 'add', f'{network}9/64', 'dev',
                        'eth0', 'nodad')
                vnf.run(host, 'ip', 'route', 'add', 'default', 'via',
                        f'{network}1')
            server = '2001:db8:2::9'
            self.wait_for(lambda: vnf.control.read('o.state') == 'active')
            self.assertEqual(3, vnf.ping('left', server, 3))
            before = vnf.count('left_in.count')
            for port in (53, 54):
                self._send(vnf, port, server)
            self.wait_for(lambda: self._hits('vif0')[0] == _COUNT)
            self.wait_for(lambda: vnf.control.read('o.switch_hits').startswith(
                f'{_COUNT}\tdrop ip6'))
            self.assertGreaterEqual(vnf.count('left_in.count'),
                                    before + _COUNT)
            self.assertLess(vnf.count('left_in.count'), before + 2 * _COUNT)

    def test_hostile_wishes_are_refused_by_name(self):
        with xen_bench.XenBench('firewall', self.bench, image.FULL) as vnf:
            self._firewall(vnf)
            domid = self.bench.client.call('info', uuid=vnf.uuid)['domid']
            node = f'/local/domain/{domid}/data/clickos/offload'
            for text, words in _HOSTILE.items():
                self.dom0.check(f"xenstore-write {node}/0 '{text}'")
                answer = self.wait_for(
                    lambda: self._answer(node, text.partition('\\')[0]))
                self.assertIn(words, answer)
                self.assertLess(len(answer), 300)
                self.assertEqual([], self._hits('vif0'))
            # A device that the guest does not have, and many wishes.
            self.dom0.check(f"xenstore-write {node}/7 '9\\x0adrop'")
            self.dom0.check(
                f'for n in $(seq {_WRITES}); do xenstore-write {node}/0 '
                '"1$n\\x0adrop proto 17"; done', timeout_s=120)
            self.wait_for(lambda: self._answer(node, f'1{_WRITES}'))
            self.assertEqual({'vif0', 'vif1'},
                             {table['port'] for table in self._tables()})
            # The guest's own next wish is in force again.
            self._firewall(vnf)
            self._send(vnf, 53, vnf.address('right'))
            self._denied(vnf, _COUNT)

    def _answer(self, node, version):
        """Return the toolstack's answer about a version, if it has come."""
        answer = self.dom0.run(
            f'xenstore-read {node}ed/0').out.strip()
        return answer if answer.startswith(f'{version} ') else None
