# SPDX-License-Identifier: Apache-2.0
"""Handlers through the store, against its plain reads and writes."""

import statistics

from clickos_lab.xen import toolstack
from tests.figures import table as _table
from tests.xen import guest

_ROUNDS, _TIMES = 40, 5
_CONFIG = 's :: Switch(0); Idle -> s; s[0] -> Discard; s[1] -> Discard;'
_REQUESTS = ('read s.switch', 'write s.switch 1')
#: A node without a watch.
_PLAIN = '/tool/plain'
_NAME = 'asked'


def measure(host, table):
    """Fill the table's part."""
    made = guest.Guest(host.dom0, 'handlers', 'pvh').create()
    made.install(_CONFIG)
    # In turn, so that a busy machine slows all of them.
    rounds = [_round(host, made) for _ in range(_TIMES)]
    written, read, by_node, shown, *requests = map(
        statistics.median, zip(*rounds))
    table.add('plain write, one connection', written, 'us')
    table.add('plain read, one connection', read, 'us')
    table.add('handler write by its node, one connection', by_node, 'us',
              written)
    table.add('handler read by its nodes, one connection', shown, 'us',
              written + read)
    # Request and answer written, each read once, both removed.
    for words, took in zip(_REQUESTS, requests):
        table.add(f'request {words}, one connection; to its six plain '
                  'requests', took, 'us', 4 * written + 2 * read)
    _commands(host, table, made)
    made.destroy()


def _round(host, made):
    router = made.path('0')
    took = _numbers(host, f'store {_PLAIN}')
    took += _numbers(host, f'store {router}/elements/s/switch')[:1]
    took += _numbers(host, f'shown {router}', 's/switch')
    for words in _REQUESTS:
        took += _numbers(host, f'handler {router}', f'"{words}"')
    return took


def _numbers(host, what, more=''):
    out = host.dom0.check(f'/root/timing {what} {_ROUNDS} {more}')
    return [float(word) for word in out.split()]


def _commands(host, table, made):
    """As a person sees it: each time a program is started."""
    _start_cosmos(host)
    shown = made.path('0/elements/s/switch')
    ours = {words: toolstack.command('cosmos', *words.split())
            for words in (f'write {_NAME} s.switch 1',
                          f'read {_NAME} s.switch')}
    written, read, by_node, *took = (
        _command_us(host, command) for command in (
            f'xenstore-write {_PLAIN} 0', f'xenstore-read {_PLAIN}',
            f'xenstore-write {shown} 1', *ours.values()))
    table.add('command xenstore-write', written, 'us')
    table.add('command xenstore-read', read, 'us')
    table.add('command xenstore-write of a handler, until it is done',
              by_node, 'us', written)
    for words, one, plain in zip(ours, took, (written, read)):
        table.add(f'command cosmos {words}', one, 'us', plain)


def _start_cosmos(host):
    host.dom0.put_text(_CONFIG, '/root/asked.click')
    toolstack.start(host, 'valed')
    toolstack.start(host, 'cosmosd')
    host.dom0.check(toolstack.command(
        'cosmos', 'create', '--name', _NAME, '--config', '/root/asked.click'))


def _command_us(host, command):
    """Time a command; each run also costs the loop a fork."""
    script = f'for i in $(seq 50); do {command} >/dev/null; done'
    return _table.middle(lambda: float(host.dom0.check(
        f'began=${{EPOCHREALTIME/./}}; {script}; '
        'echo $(((${EPOCHREALTIME/./} - began) / 50))')), 3)
