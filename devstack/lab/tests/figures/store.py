# SPDX-License-Identifier: Apache-2.0
"""Handlers through the store, against plain reads and writes of it."""

from tests.figures import table as _table
from tests.xen import guest

_ROUNDS = 100


def measure(host, table):
    """Fill the table's part."""
    made = guest.Guest(host.dom0, 'handlers', 'pvh').create()
    made.install('s :: Switch(0); Idle -> s; s[0] -> Discard; '
                 's[1] -> Discard;')
    key = made.path('plain')
    written, read = _pair(host, f'/root/timing store {key} {_ROUNDS}')
    table.add('plain write, one connection', written, 'us')
    table.add('plain read, one connection', read, 'us')
    for words in ('read s.switch', 'write s.switch 1'):
        took = float(host.dom0.check(
            f'/root/timing handler {made.path("0")} {_ROUNDS} "{words}"'))
        table.add(f'handler: {words}, one connection', took, 'us',
                  written if 'write' in words else read)
    _commands(host, table, made, key)
    made.destroy()


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
