# SPDX-License-Identifier: Apache-2.0
"""What tables, rules and routers take of a guest's memory, and how long."""

import itertools
import random
import time

from tests.xen import guest

_ROUTERS = 64
_numbers = itertools.count(1)


def _idle(text):
    return f'Idle -> {text} -> Discard;'


def _address(draw):
    return '.'.join(str(draw.randrange(1, 255)) for _ in range(4))


def routes(count):
    """Return a router with ``count`` routes, of prefixes of 24 bits."""
    lines = [f'{10 + n // 65536}.{n // 256 % 256}.{n % 256}.0/24 0'
             for n in range(count)]
    return _idle('RadixIPLookup(' + ', '.join(lines) + ')')


def rules(count):
    """Return a firewall with ``count`` rules, each with a whole five-tuple."""
    draw = random.Random(1)
    lines = [f'allow tcp && src host {_address(draw)} && dst host '
             f'{_address(draw)} && src port > 1023 '
             f'&& dst port {draw.randrange(1, 65536)}'
             for _ in range(count)]
    return _idle('IPFilter(' + ',\n'.join([*lines, 'deny all']) + ')')


def patterns(count):
    """Return a search for ``count`` patterns of 16 letters."""
    draw = random.Random(2)
    words = (''.join(draw.choices('abcdefghijklmnopqrstuvwxyz', k=16))
             for _ in range(count))
    return _idle('StringMatcher(' + ', '.join(words) + ')')


def measure(host, table):
    """Fill the table's part."""
    for name, text, mib in (
            ('1,000 routes', routes(1000), 32),
            ('1,000 rules', rules(1000), 32),
            ('400 patterns', patterns(400), 32),
            ('10,000 rules', rules(10000), 128)):
        _one(host, table, name, text, mib)
    _many(host, table)


def _guest(host, mib):
    made = guest.Guest(host.dom0, f'mem{next(_numbers)}', 'pvh',
                       f'memory = {mib}')
    made.create()
    _install(made, 'Idle -> Discard;')
    return made


def _install(made, text, rid=0):
    found = made.install(text, rid=rid)
    if found != ('Running', ''):
        raise AssertionError(f'{found}')


def _free_kib(made):
    return int(made.get('memory'))


def _one(host, table, name, text, mib):
    made = _guest(host, mib)
    before, began_s = _free_kib(made), time.monotonic()
    _install(made, text)
    table.add(f'{name}: {len(text)} bytes, put into the store and Running',
              time.monotonic() - began_s, 's')
    table.add(f'{name}: memory of the guest', before - _free_kib(made), 'KiB')
    made.destroy()


def _many(host, table):
    """Routers side by side in 8 MiB."""
    made = _guest(host, 8)
    before, began_s = _free_kib(made), time.monotonic()
    for rid in range(1, _ROUTERS):
        _install(made, 'Idle -> c :: Counter -> Queue(10) -> Discard;', rid)
    table.add(f'{_ROUTERS} routers in memory=8, one after the other',
              time.monotonic() - began_s, 's')
    table.add(f'{_ROUTERS} routers: memory of each',
              (before - _free_kib(made)) / (_ROUTERS - 1), 'KiB')
    if made.request('read c.count', rid=_ROUTERS - 1) != (200, '0'):
        raise AssertionError('the last router does not answer')
    made.destroy()
