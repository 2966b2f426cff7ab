# SPDX-License-Identifier: Apache-2.0
"""A random configuration."""
from click_compare.analysis import ANALYSIS
from click_compare.elements import PIECES
from click_compare.expressions import pattern
from click_compare.frames import FRAMES
from click_compare.ip6 import IP6
from click_compare.pieces import piece
from click_compare.timed import TIMED

_WIDTH = ('ip_src ip_dst ip_proto sport dport ip_len')


class Chain:
    """Pieces one after the other, and the handlers to read of them."""

    def __init__(self, rng, prefix, choices, most):
        pieces = [piece(rng, f'{prefix}{n}', choices)
                  for n in range(rng.randint(0, most))]
        self.names = [f'{prefix}{n}' for n in range(len(pieces))]
        self.texts = [text for text, _ in pieces]
        self.handlers = [name for _, names in pieces for name in names]

    def __str__(self):
        return ''.join(f'{name} -> ' for name in self.names)


def configuration(rng, trace, dump):
    """Return the text of a configuration, and the handlers to read.

    It takes packets from file ``trace``; ``dump`` gets a line for each that
    comes through.
    """
    frames = Chain(rng, 'f', FRAMES, 2)
    packets = Chain(rng, 'p', PIECES + ANALYSIS + TIMED, 7)
    six = Chain(rng, 's', IP6, 4)
    check = rng.choice(('CheckIPHeader', 'CheckIPHeader(VERBOSE true)',
                        'CheckIPHeader(BADSRC 18.26.4.9 0.0.0.0)',
                        'CheckIPHeader(CHECKSUM false)', 'MarkIPHeader'
                        if rng.random() < .1 else 'CheckIPHeader2'))
    lines = [
        'RandomSeed(7);', *frames.texts, *packets.texts, *six.texts,
        f'FromDump({trace}, TIMING {rng.choice(("true", "false"))}) -> '
        f'{frames}v :: Classifier(12/86dd, -); v[0] -> Strip(14) -> '
        f'CheckIP6Header -> {six}Print(six, 80) -> Discard; v[1] -> cl :: '
        f'Classifier({pattern(rng)}, {pattern(rng)}, -);',
        'cl[0] -> Print(cl0, 20) -> x :: Null; cl[1] -> Print(cl1, 20) -> x; '
        'cl[2] -> x;',
        f'x -> Strip(14) -> {check} -> {packets}'
        'IPPrint(end, TIMESTAMP false) -> Print(last, 64) -> '
        f'ToIPSummaryDump({dump}, FIELDS {_WIDTH}) -> Discard;',
        f'Script({_orders(rng, packets.handlers)}wait 200s, stop);']
    handlers = frames.handlers + packets.handlers + six.handlers
    # of a lone handler the program prints no name
    handlers += ['cl.name', 'x.name']
    return '\n'.join(lines) + '\n', handlers


_WRITES = {'switch': ('0', '1', '-1'),
           'sampling_prob': ('0.9',), 'rate': ('3', '9'),
           'capacity': ('7', '400'), 'active': ('false',),
           'delay': ('0.3',)}


def _orders(rng, handlers):
    """Return steps of a script that change elements as packets come."""
    steps = ''
    for handler in handlers:
        values = _WRITES.get(handler.rsplit('.', 1)[1])
        if values and rng.random() < .4:
            steps += (f'wait {rng.choice((3.5, 7.5))}s, '
                      f'write {handler} {rng.choice(values)}, ')
    return steps
