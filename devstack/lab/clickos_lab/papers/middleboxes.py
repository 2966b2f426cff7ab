# SPDX-License-Identifier: Apache-2.0
"""Rates of the catalog's VNFs, by size of the frames."""

import time

from clickos_lab import errors
from clickos_lab.papers import figure
from clickos_lab.papers import testbed as _testbed
from clickos_lab.papers import throughput
from clickos_lab.vnf import rendering

_DENIED = [f'deny udp src host 10.8.{n // 250}.{n % 250 + 1}'
           for n in range(99)]
#: Properties of each VNF; others need a peer that speaks their protocol.
_VNFS = {
    'wire': {}, 'router': {}, 'firewall': {'rules': [*_DENIED, 'allow udp']},
    'stateful-firewall': {'rules': ['allow all']},
    'nat': {'public': '10.9.2.100'},
    'cgn': {'subscribers': '10.9.1.0/24', 'public': '10.8.0.1/32',
            'block': 64},
    'ips': {}, 'flow-monitor': {}}
_TARGET = '10.9.2.9'
_SINK = '''
FromDevice(0) -> kind :: Classifier(12/0806 20/0001, -);
kind[0] -> ARPResponder({ip} {mac}) -> Queue -> ToDevice(0);
kind[1] -> c :: Counter -> Discard;
'''
_PATIENCE_S = 20


def catalog(state):
    """Each VNF between a guest that sends and one that counts."""
    made = figure.Figure(
        'fig13-middleboxes', 'VNFs of the catalog',
        'NSDI 2014, Figure 13', throughput.SIZE, throughput.RATE)
    for name, properties in _VNFS.items():
        for size in throughput.SIZES:
            with _testbed.Testbed(state) as testbed:
                made.add(name, size, _through(testbed, name, properties, size))
    return made


def _through(testbed, name, properties, size):
    left, right = testbed.vif(1), testbed.vif(2)
    _boot(testbed, name, properties, left, right)
    vif = testbed.vif(2)
    sink = testbed.boot(_SINK.format(ip=_TARGET, mac=vif['mac']), vif)
    testbed.source(_testbed.frame(size, _testbed.mac(0xffff), left['mac']),
                   testbed.vif(1))
    end_s = time.monotonic() + _PATIENCE_S
    while not testbed.counted(sink):
        if time.monotonic() > end_s:
            raise errors.LabError(f'{name}: no packet comes through')
    return testbed.rates(sink)[0]


def _boot(testbed, name, properties, *vifs):
    """Start a VNF as Tacker does."""
    vdu = rendering.vdu(name)
    interfaces = [rendering.interface(vdu, index, False)
                  for index in range(len(vdu.cps))]
    made = rendering.configuration(vdu, interfaces, properties)
    for vif, interface in zip(vifs, interfaces):
        vif['mac'] = interface.mac
    testbed.boot(made.config, *vifs, writes=made.writes)
