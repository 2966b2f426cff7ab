# SPDX-License-Identifier: Apache-2.0
"""Creations until ``Running``: by cosmosd, new and from the pool, and by xl.

All of the same image, 8 MiB, type pvh, with a configuration of a counter.
"""

import itertools
import json

from clickos_lab.xen import image
from clickos_lab.xen import toolstack
from tests.figures import table as _table

_ROUNDS = 5
_POOL = 8
#: Of the pool whose guests are taken one after the other.
_MANY = 100
_CONFIG = 'Idle -> c :: Counter -> Discard;'
_VIFS = {'no vif': '', 'one vale vif': '--vif port=fig',
         'one stock vif': '--vif bridge=br0'}
_numbers = itertools.count(1)


def measure(host, table):
    """Fill the table's part."""
    host.dom0.put_text(_CONFIG, '/root/fig.click')
    host.dom0.run('lab-net bridge br0')
    toolstack.start(host, 'valed')
    xl = {name: _table.middle(lambda: _xl_ms(host, stock), _ROUNDS)
          for name, stock in (('no vif', False), ('one stock vif', True))}
    for name, took in xl.items():
        table.add(f'xl create until Running, {name}', took, 'ms')
    xl['one vale vif'] = xl['no vif']       # xl knows no vale vif
    for kind, pool in (('new', 0), ('of the pool', _POOL)):
        _restart(host, pool)
        for name, vif in _VIFS.items():
            made = [_create(host, vif, pool) for _ in range(_ROUNDS)]
            _add(table, f'cosmosd, {kind}, {name}', made, xl[name])
    _many(host, table)


def _restart(host, pool):
    host.dom0.run('kill -9 $(pidof cosmosd)')
    toolstack.start(host, 'cosmosd', pool=pool)
    _wait_pool(host, pool)


def _wait_pool(host, pool):
    host.dom0.check(
        f'until {toolstack.command("cosmos", "host")} | '
        f'grep -qx "pooled *{pool}"; do sleep 1; done', timeout_s=1200)


def _create(host, vif, pool=0):
    """Return the milliseconds of the steps of a creation."""
    name = f'fig{next(_numbers)}'
    made = _take(host, name, vif)
    host.dom0.check(toolstack.command('cosmos', 'destroy', name))
    if pool:
        _wait_pool(host, pool)
    return made


def _take(host, name, vif=''):
    command = toolstack.command(
        'cosmos', '-o', 'json', 'create', '--name', name, '--config',
        '/root/fig.click', '--timeout', 60, *vif.split())
    return dict(json.loads(host.dom0.check(command, timeout_s=120))
                ['steps_ms'])


def _add(table, name, made, to):
    whole = sorted(made, key=lambda steps: sum(steps.values()))
    steps = whole[len(whole) // 2]
    table.add(name, sum(steps.values()), 'ms', to)
    for step, took in steps.items():
        table.add(f'- {step}', took, 'ms', sum(steps.values()))


def _xl_ms(host, stock):
    name = f'fig{next(_numbers)}'
    vif = 'vif = ["bridge=br0"]\n' if stock else ''
    host.dom0.put_text(image.config('pvh', name) + vif, f'/root/{name}.cfg')
    out = host.dom0.check(f"""
began=${{EPOCHREALTIME/./}}
xl create -q /root/{name}.cfg
root=/local/domain/$(xl domid {name})/data/clickos/0
xenstore-write $root/config/0 "$(cat /root/fig.click)" $root/generation 1
until [ "$(xenstore-read $root/state 2>/dev/null)" = 'Running 1' ]; do :; done
echo $((${{EPOCHREALTIME/./}} - began)); xl destroy {name}
""", timeout_s=120)
    return float(out) / 1e3


def _many(host, table):
    """One guest of the pool after the other, until it is empty."""
    free_kib = _free_kib(host)
    _restart(host, _MANY)
    used_kib = (free_kib - _free_kib(host)) / (_MANY - _POOL)
    took = [sum(_take(host, f'many{n}').values()) for n in range(_MANY)]
    first = _middle_of(took, 0)
    table.add('of the pool, the 1st to 5th', first, 'ms')
    for number in (_MANY // 2, _MANY - 5):
        table.add(f'of the pool, the {number + 1}th to {number + 5}th',
                  _middle_of(took, number), 'ms', first)
    table.add("dom0's memory for one guest", used_kib, 'KiB')


def _middle_of(took, start):
    return sorted(took[start:start + 5])[2]


def _free_kib(host):
    return float(host.dom0.check(
        "sed -n 's/^MemAvailable: *\\([0-9]*\\).*/\\1/p' /proc/meminfo"))
