# SPDX-License-Identifier: Apache-2.0
"""Forms of pieces: how an element stands in a chain."""


def piece(rng, name, choices):
    """Return a compound's text, and handlers of its element ``e`` to read."""
    text, *handlers = rng.choice(choices)(rng)
    return f'{name} :: {{ {text} }};', [f'{name}/e.{h}' for h in handlers]


def through(config, *handlers):
    """An element with one input and one output."""
    return f'input -> e :: {config} -> output', *handlers


def aside(config, *handlers, outputs=2):
    """An element whose further outputs are shown and dropped."""
    rest = '; '.join(f'e[{n}] -> Print(aside{n}, 48) -> Discard'
                     for n in range(1, outputs))
    return f'input -> e :: {config} -> output; {rest}', *handlers


def merged(config, outputs, *handlers):
    """An element whose outputs meet again."""
    rest = '; '.join(f'e[{n}] -> Paint({n + 3}) -> x'
                     for n in range(1, outputs))
    return (f'input -> e :: {config} -> x :: Null -> output; {rest}',
            *handlers)


def scheduled(config, *handlers):
    """Two queues and what takes packets from them."""
    return ('input -> h :: HashSwitch(12, 4); h[0] -> q0 :: Queue(300); '
            f'h[1] -> q1 :: Queue(400); q0 -> e :: {config} '
            '-> Unqueue -> output; q1 -> [1] e', *handlers)


def rewriter(config):
    """A rewriter that sees answers to every second packet, too."""
    return (f'e :: {config}; input -> r :: RoundRobinSwitch -> [0] e; '
            'r[1] -> t :: Tee(2) -> [0] e; t[1] -> Discard; '
            'e[0] -> x :: Tee(2) -> output; '
            'x[1] -> CheckIPHeader -> IPMirror -> [1] e; '
            'e[1] -> IPPrint(back, TIMESTAMP false) -> Discard',)


def numbers(rng, name, *choices):
    """An element with one of some arguments."""
    return through(f'{name}({rng.choice(choices)})')


def queued(config, *handlers, queue='Queue(300)'):
    """An element that packets are pulled through."""
    return (f'input -> {queue} -> e :: {config} -> Unqueue -> output',
            *handlers)
