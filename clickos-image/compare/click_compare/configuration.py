# SPDX-License-Identifier: Apache-2.0
"""A random configuration."""
from click_compare.elements import piece
from click_compare.expressions import pattern


def configuration(rng, trace, dump):
    """Return the text of a configuration, and the handlers to read.

    It takes packets from file ``trace``; ``dump`` gets a line for each that
    comes through.
    """
    pieces = [piece(rng, f'p{n}') for n in range(rng.randint(2, 8))]
    chain = ' -> '.join(f'p{n}' for n in range(len(pieces)))
    check = rng.choice(('CheckIPHeader', 'CheckIPHeader(VERBOSE true)'))
    lines = [
        'RandomSeed(7);', *(text for text, _ in pieces),
        f'FromDump({trace}, STOP true) -> cl :: '
        f'Classifier({pattern(rng)}, {pattern(rng)}, -);',
        'cl[0] -> Print(cl0, 20) -> x :: Null; cl[1] -> Print(cl1, 20) -> x; '
        'cl[2] -> x;',
        f'x -> Strip(14) -> {check} -> {chain} -> '
        'IPPrint(end, TIMESTAMP false) -> Print(last, 64) -> '
        f'ToIPSummaryDump({dump}, FIELDS ip_src ip_dst ip_proto sport dport '
        'ip_len) -> Discard;']
    handlers = [name for _, names in pieces for name in names]
    # of a lone handler the program prints no name
    handlers += ['cl.name', 'x.name']
    return '\n'.join(lines) + '\n', handlers
