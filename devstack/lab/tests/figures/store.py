# SPDX-License-Identifier: Apache-2.0
"""Handlers through the store, against plain reads and writes of it."""

import statistics

from tests.figures import table as _table
from tests.xen import guest

_ROUNDS, _TIMES = 40, 5
_REQUESTS = ('read s.switch', 'write s.switch 1')


def measure(host, table):
    """Fill the table's part."""
    made = guest.Guest(host.dom0, 'handlers', 'pvh').create()
    made.install('s :: Switch(0); Idle -> s; s[0] -> Discard; '
                 's[1] -> Discard;')
    key = made.path('plain')
    # In turn, so that a busy machine slows all of them.
    rounds = [_round(host, made, key) for _ in range(_TIMES)]
    written, read, *handlers = map(statistics.median, zip(*rounds))
    table.add('plain write, one connection', written, 'us')
    table.add('plain read, one connection', read, 'us')
    # Request and answer written, each read once, both removed.
    plain = 4 * written + 2 * read
    table.add('the six requests to the store a handler takes, plain', plain,
              'us')
    for words, took in zip(_REQUESTS, handlers):
        table.add(f'handler: {words}, one connection', took, 'us', plain)
    _commands(host, table, made, key)
    made.destroy()


def _round(host, made, key):
    took = _pair(host, f'/root/timing store {key} {_ROUNDS}')
    for words in _REQUESTS:
        took.append(float(host.dom0.check(
            f'/root/timing handler {made.path("0")} {_ROUNDS} "{words}"')))
    return took


def _pair(host, command):
    return [float(word) for word in host.dom0.check(command).split()]


def _commands(host, table, made, key):
    """As a person sees it: each time a program is started."""
    written = _command_us(host, f'xenstore-write {key} 0')
    read = _command_us(host, f'xenstore-read {key}')
    table.add('command xenstore-write', written, 'us')
    table.add('command xenstore-read', read, 'us')
    shown = made.path('0/elements/s/switch')
    table.add('command xenstore-write of a handler, until it is done',
              _command_us(host, f'xenstore-write {shown} 1'), 'us', written)


def _command_us(host, command):
    """Time a command; the loop's own cost is a fork of it."""
    script = f'for i in $(seq 50); do {command} >/dev/null; done'
    return _table.middle(lambda: float(host.dom0.check(
        f'began=${{EPOCHREALTIME/./}}; {script}; '
        'echo $(((${EPOCHREALTIME/./} - began) / 50))')), 3)
