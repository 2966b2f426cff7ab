# SPDX-License-Identifier: Apache-2.0
"""Elements that count, mark and tell packets apart by annotations."""
from click_compare.expressions import expression
from click_compare.pieces import aside
from click_compare.pieces import merged
from click_compare.pieces import numbers
from click_compare.pieces import through

_SHOWN = 'IPPrint(g, TIMESTAMP false, AGGREGATE true, PAINT true)'
_PARTS = ('ip src', 'ip dst/16', 'ip src/8', 'ip proto', 'ip tos', 'ip len',
          'ip id', 'ip ttl', 'ip hl', 'ip sum', 'tcp flags', 'tcp sport',
          'tcp dport', 'ip[9]', 'ip[12:2]', 'ip[12:4]/12',
          'ip dst & 0x00ff0000', 'udp len', 'icmp type')
_FIELDS = (
    'timestamp', 'ts_sec', 'ts_usec', 'ip_src', 'ip_dst', 'ip_len',
    'ip_proto', 'ip_id', 'ip_tos', 'ip_ttl', 'ip_hl', 'ip_frag',
    'ip_fragoff', 'ip_opt', 'ip_sum', 'ip_capture_len', 'sport', 'dport',
    'tcp_seq', 'tcp_ack', 'tcp_flags', 'tcp_opt', 'tcp_sack', 'tcp_window',
    'tcp_off', 'tcp_urp', 'udp_len', 'icmp_type', 'icmp_code',
    'icmp_type_name', 'icmp_code_name', 'icmp_flowid', 'icmp_seq',
    'payload_len', 'payload_md5_hex', 'wire_len', 'count', 'link',
    'aggregate')


def _aggregate(config):
    return (f'input -> {config} -> {_SHOWN} -> e :: AggregateCounter -> '
            'output', 'nagg', 'count')


def _limits(rng):
    call = rng.choice(('COUNT_CALL', 'BYTE_COUNT_CALL'))
    return ('input -> e :: Counter({} {} s.switch 1) -> s :: Switch(0) -> '
            'x :: Null -> output; s[1] -> Paint(9) -> x'.format(
                call, rng.choice((0, 1, 10, 500))), 'count', 'byte_count')


def _summary(rng):
    fields = rng.sample(_FIELDS, rng.randint(2, 9))
    return ('input -> t :: Tee -> output; t[1] -> e :: '
            f'ToIPSummaryDump(-, FIELDS {" ".join(fields)})', 'name')


def _compared(_rng):
    return ('input -> t :: Tee; t[0] -> Queue(90) -> [0] e :: ComparePackets '
            '-> Unqueue -> output; t[1] -> StoreData(22, \\<ff>) -> Queue(90) '
            '-> [1] e; e[1] -> Unqueue -> Discard',
            'diffs', 'diff_details', 'all_same')


ANALYSIS = (
    _limits, _summary, _summary, _summary, _compared,
    lambda r: _aggregate(f'AggregateIP({r.choice(_PARTS)})'),
    lambda r: _aggregate(f'AggregateIP({r.choice(_PARTS)})'),
    lambda r: _aggregate('AggregateLength'),
    lambda r: _aggregate(f'AggregateLength(IP {r.choice(("true", "0"))})'),
    lambda r: _aggregate(f'Paint({r.randint(0, 255)}) -> AggregatePaint'),
    lambda r: _aggregate('Paint(200) -> AggregatePaint(BITS {}, '
                         'INCREMENTAL {})'.format(
                             r.randint(1, 8), r.choice(('true', 'false')))),
    lambda r: _aggregate('AggregateIPFlows(ICMP true, FRAGMENTS false)'),
    lambda r: merged(f'AggregateIP({r.choice(_PARTS)}) -> AggregateFirst',
                     1),
    lambda r: (f'input -> AggregateIP({r.choice(_PARTS)}) -> '
               'e :: AggregateFirst -> output; e[1] -> Print(again, 8) -> '
               'Discard',),
    lambda r: (f'input -> AggregateIP({r.choice(_PARTS)}) -> e :: '
               'AggregateFilter(0 0-9, 1 10-200 6 17, 0 all) -> x :: Null '
               '-> output; e[1] -> Paint(7) -> x',),
    lambda r: (f'input -> AggregateIP({r.choice(_PARTS)}) -> '
               'e :: AggregateCounter(BYTES true, IP_BYTES '
               f'{r.choice(("true", "false"))}, EXTRA_LENGTH false) -> '
               'output', 'nagg', 'count'),
    lambda r: aside('TimeFilter(START_DELAY {}, END_DELAY {})'.format(
        r.choice((0, 5, '12.5s')), r.choice((20, 33, '1min')))),
    lambda r: through('TimeRange', 'range', 'interval', 'first', 'last'),
    lambda r: through('AdjustTimestamp({}) -> IPPrint(at)'.format(
        r.choice(('-5', '2.25', '1min'))), 'name'),
    lambda r: through(f'SetTimestamp({r.choice((5, "7.000001"))}) -> '
                      'IPPrint(at)', 'name'),
    lambda r: through('StoreTimestamp({})'.format(
        r.choice((12, 20, 'TAIL true')))),
    lambda r: numbers(r, 'SetAnnoByte', 'PAINT, 3', '5, 255', '0, 1'),
    lambda r: through(f'SetAnnoByte(PAINT, {r.randint(0, 4)}) -> '
                      f'CheckPaint({r.randint(0, 4)})'),
    lambda r: through('SetPacketType({}) -> {}'.format(
        r.choice(('HOST', 'BROADCAST', 'OUTGOING', 'MULTICAST')),
        r.choice(('DropBroadcasts', 'Print(type, 8, PRINTANNO true)')))),
    lambda r: aside(f'IPFilter(allow {expression(r)}, deny all)', 'length'),
)
