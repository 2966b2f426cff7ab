# SPDX-License-Identifier: Apache-2.0
"""What an idle guest costs: memory of Xen and of dom0, and instructions."""

from clickos_lab.xen import qemu
from clickos_lab.xen import toolstack

_GUESTS = 50
_SECONDS = 60
_CONFIG = 'FromDevice(0) -> c :: Counter -> Discard;'
#: The least memory of a router without devices, and the usual one.
_SIZES_MIB = (4, 8)
_VIFS = {'no vif': 'Idle -> c :: Counter -> Discard;', 'a vale vif': _CONFIG}
_DOM0 = 0


def measure(host, table):
    """Fill the table's part."""
    toolstack.start(host, 'valed')
    toolstack.start(host, 'cosmosd')
    alone = _used(host, [])[1]
    for what, config in _VIFS.items():
        host.dom0.put_text(config, '/tmp/idle.click')
        for mib in _SIZES_MIB:
            if what == 'no vif' or mib == 8:
                _crowd(host, table, what, mib, alone)


def _crowd(host, table, what, mib, alone):
    """Measure guests of one kind.

    :param alone: what dom0 uses without a guest
    """
    before = _free_kib(host)
    domids = [_create(host, number, what, mib) for number in range(_GUESTS)]
    after = _free_kib(host)
    name = f'{mib} MiB, {what}'
    for whose, was, left in zip(("Xen's", "dom0's"), before, after):
        table.add(f'{name}: {whose} memory', (was - left) / _GUESTS, 'KiB')
    guests, dom0 = _used(host, domids)
    table.add(f'{name}: the guest', guests / _GUESTS, 'instructions/s')
    table.add(f'{name}: dom0 for it', (dom0 - alone) / _GUESTS,
              'instructions/s')
    for number in range(_GUESTS):
        host.dom0.check(toolstack.command('cosmos', 'destroy', f'i{number}'))


def _create(host, number, what, mib):
    """Create a guest; return its domain id."""
    vif = ('--vif', 'segment=7') if what == 'a vale vif' else ()
    host.dom0.check(toolstack.command(
        'cosmos', 'create', '--name', f'i{number}', '--config',
        '/tmp/idle.click', '--memory', mib, '--timeout', 60, *vif),
        timeout_s=120)
    return int(host.dom0.check(
        toolstack.command('cosmos', '-o', 'json', 'info', f'i{number}') +
        ' | sed -n "s/.*\\"domid\\": *\\([0-9]*\\).*/\\1/p"'))


def _used(host, domids):
    """Return the instructions a second of all guests, and of dom0."""
    before = _so_far(host, domids)
    host.dom0.check(f'sleep {_SECONDS}', timeout_s=_SECONDS * 20)
    after = _so_far(host, domids)
    guests, dom0 = ((b - a) / qemu.INSTRUCTION_NS / _SECONDS
                    for a, b in zip(before, after))
    return guests, dom0


def _so_far(host, domids):
    """Return the nanoseconds of all guests so far, and of dom0."""
    guests, dom0 = (
        host.dom0.check(f'for d in {" ".join(map(str, some))}; do '
                        '/root/timing cpu $d; done', timeout_s=120)
        for some in (domids, [_DOM0]))
    return sum(map(float, guests.split())), float(dom0)


def _free_kib(host):
    """Return what Xen and what dom0 have free, without what dom0 caches."""
    out = host.dom0.check("""
sleep 3; sync; echo 3 >/proc/sys/vm/drop_caches
xl info | sed -n 's/^free_memory *: *//p'
sed -n 's/^MemAvailable: *\\([0-9]*\\).*/\\1/p' /proc/meminfo""")
    xen_mib, dom0_kib = map(float, out.split())
    return xen_mib * 1024, dom0_kib
