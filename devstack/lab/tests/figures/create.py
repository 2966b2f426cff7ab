# SPDX-License-Identifier: Apache-2.0
"""Creations until ``Running``: by cosmosd, new and from the pool, and by xl.

All guests have the same image, type pvh, and a counter as configuration.
Guests of xl and of the pool have 8 MiB. New guests of cosmosd have 9 MiB, a
size that the pool does not have. The pool has guests without preconnected
vifs, with one of the switch, and with one of netback.
"""

import itertools
import json
import statistics

from clickos_lab.xen import image
from clickos_lab.xen import toolstack

_ROUNDS = 5
_POOL = 2
#: Vifs that guests of the pool have from the start: ``_POOL`` guests each.
_PRECONNECTED = ('', 'vifs = 1', 'nics = 1')
#: A size of which the pool has none.
_NEW_MIB = 9
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
    toolstack.start(host, 'cosmosd', pool=_POOL, preconnected=_PRECONNECTED)
    # In turn, so that a busy machine slows all of them.
    rounds = [_round(host) for _ in range(_ROUNDS)]
    xl = {vif: statistics.median(made['xl', vif] for made in rounds)
          for vif in ('no vif', 'one stock vif')}
    for vif, took in xl.items():
        table.add(f'xl create until Running, {vif}', took, 'ms')
    for kind in ('new', 'of the pool'):
        for vif in _VIFS:
            # xl knows no vale vif
            _add(table, f'cosmosd, {kind}, {vif}',
                 [made[kind, vif] for made in rounds],
                 xl.get(vif, xl['no vif']))
    _many(host, table)


def _round(host):
    """Create one of each kind; return the milliseconds."""
    made = {}
    for vif, options in _VIFS.items():
        if vif != 'one vale vif':
            _wait_pool(host, _POOL * len(_PRECONNECTED))
            made['xl', vif] = _xl_ms(host, vif == 'one stock vif')
        made['new', vif] = _create(host, f'{options} --memory {_NEW_MIB}')
        made['of the pool', vif] = _create(host, options)
    return made


def _restart(host, pool):
    host.dom0.run('kill -9 $(pidof cosmosd)')
    toolstack.start(host, 'cosmosd', pool=pool)
    _wait_pool(host, pool)


def _wait_pool(host, pool):
    host.dom0.check(
        f'until {toolstack.command("cosmos", "host")} | '
        f'grep -qx "pooled *{pool}"; do sleep 1; done', timeout_s=1200)


def _create(host, options):
    """Return the milliseconds of the steps of a creation."""
    _wait_pool(host, _POOL * len(_PRECONNECTED))
    name = f'fig{next(_numbers)}'
    made = _take(host, name, options)
    host.dom0.check(toolstack.command('cosmos', 'destroy', name))
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
    _restart(host, 0)
    before = _free_kib(host)
    _restart(host, _MANY)
    used = [(free - left) / _MANY
            for free, left in zip(before, _free_kib(host))]
    took = _take_all(host, _MANY)
    first = _middle_of(took, 0)
    table.add('of the pool, guests 1 to 5', first, 'ms')
    for number in (_MANY // 2, _MANY - 5):
        table.add(f'of the pool, guests {number + 1} to {number + 5}',
                  _middle_of(took, number), 'ms', first)
    table.add("dom0's memory for one guest", used[0], 'KiB')
    table.add("Xen's memory for one guest of 8 MiB", used[1], 'KiB')


def _take_all(host, count):
    """Create guests without a rest: else the pool would be filled between."""
    command = toolstack.command(
        'cosmos', '-o', 'json', 'create', '--config', '/root/fig.click',
        '--timeout', 60)
    out = host.dom0.check(
        f'for i in $(seq {count}); do {command} --name many$i | '
        "tr -d '\\n'; echo; done", timeout_s=count * 20)
    return [sum(dict(json.loads(line)['steps_ms']).values())
            for line in out.splitlines()]


def _middle_of(took, start):
    return sorted(took[start:start + 5])[2]


def _free_kib(host):
    """Return what dom0 and what Xen have free, without what comes and goes.
    """
    out = host.dom0.check("""
sleep 3; sync; echo 3 >/proc/sys/vm/drop_caches
sed -n 's/^MemAvailable: *\\([0-9]*\\).*/\\1/p' /proc/meminfo
xl info | sed -n 's/^free_memory *: *//p'""")
    dom0_kib, xen_mib = map(float, out.split())
    return dom0_kib, xen_mib * 1024
