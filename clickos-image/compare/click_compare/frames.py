# SPDX-License-Identifier: Apache-2.0
"""Elements that take Ethernet frames."""
from click_compare.expressions import pattern
from click_compare.pieces import aside
from click_compare.pieces import merged
from click_compare.pieces import numbers
from click_compare.pieces import through

_MACS = ('2:0:0:0:0:1', '2:0:0:0:0:2', 'ff:ff:ff:ff:ff:ff')


def _switch(_rng):
    """A switch that learns who is where from frames spread over its ports."""
    return ('input -> h :: HashSwitch(6, 6); h[0] -> [0] e :: EtherSwitch; '
            'h[1] -> [1] e; Idle -> [2] e; e[0] -> x :: Null -> output; '
            'e[1] -> Print(port1, 14) -> x; e[2] -> Print(port2, 14) -> '
            'Discard', 'timeout')


FRAMES = (
    _switch,
    lambda r: through('ARPPrint(TIMESTAMP false)'),
    lambda r: through(f'ARPPrint(label, TIMESTAMP false, ETHER '
                      f'{r.choice(("true", "false"))})'),
    lambda r: merged('ARPResponder(10.0.0.0/8 2:0:0:0:0:9, 18.26.4.9 '
                     '2:0:0:0:0:8) -> Print(answer, 50)', 1),
    lambda r: ('input -> e :: ARPResponder({} 2:0:0:0:0:9) -> '
               'Print(answer, 50) -> output; e[1] -> output'.format(
                   r.choice(('10.0.0.0/8', '10.0.0.2', '0/0', '10/8 '
                             '192.168.1.9'))), 'table'),
    lambda r: aside('CheckARPHeader(14, VERBOSE true)', 'drops'),
    lambda r: aside(f'HostEtherFilter({r.choice(_MACS)}, DROP_OWN '
                    f'{r.choice(("true", "false"))}, DROP_OTHER '
                    f'{r.choice(("true", "false"))})', 'drops'),
    lambda r: through('HostEtherFilter(2:0:0:0:0:1) -> DropBroadcasts'),
    lambda r: through('EtherMirror'),
    lambda r: through(f'EtherRewrite({r.choice(_MACS)}, {r.choice(_MACS)})',
                      'src', 'dst'),
    lambda r: through(f'StoreEtherAddress({r.choice(_MACS)}, '
                      f'{r.choice(("src", "dst", 3, 30))})', 'addr'),
    lambda r: through('EnsureEther(0x800, 2:0:0:0:0:1, 2:0:0:0:0:2)'),
    lambda r: through('SetCRC32 -> Print(crc, -1) -> CheckCRC32'),
    lambda r: through(f'Truncate({r.choice((20, 40, 60))})'),
    lambda r: through(f'Pad({r.choice((60, 80))})'),
    lambda r: numbers(r, 'Print', 'q, -1', 'q, CONTENTS ASCII',
                      'q, 20, PRINTANNO true'),
    lambda r: merged(f'Classifier({pattern(r)}, {pattern(r)}, '
                     f'{pattern(r)}, -)', 4, 'program'),
    lambda r: through('VLANEncap({}) -> Print(tag, 20) -> VLANDecap'.format(
        r.choice(('7', '0x2005', 'VLAN_ID 9, VLAN_PCP 3',
                  '5, NATIVE_VLAN 5')))),
    lambda r: aside(f'VLANDecap(ANNO {r.choice(("true", "false"))})',
                    outputs=1),
    lambda r: through('VLANDecap -> VLANEncap(ANNO) -> Print(again, 20)'),
    lambda r: through('SetVLANAnno({}) -> VLANEncap(ANNO) -> '
                      'Print(anno, 20)'.format(
                          r.choice(('5', '5, 3', '0', '0, 2')))),
    lambda r: through(f'Strip(14) -> EtherVLANEncap(0x0800, {_MACS[0]}, '
                      f'{_MACS[1]}, {r.choice((1, 200, 4094))}, 2) -> '
                      'Print(whole, 24) -> StripEtherVLANHeader -> '
                      f'EtherEncap(0x0800, {_MACS[0]}, {_MACS[1]})'),
    lambda r: through('MarkMACHeader -> Strip(14) -> Unstrip(14)'),
    lambda r: through('GetEtherAddress(0, src) -> Print(got, 6, PRINTANNO '
                      'true)'),
    lambda r: merged(f'HashSwitch({r.choice((0, 6, 26))}, '
                     f'{r.choice((2, 6))})', 3),
    lambda r: aside(f'CheckLength({r.choice((42, 60))})', 'length'),
)
