# SPDX-License-Identifier: Apache-2.0
"""netfront's rates, each improvement on and off; the switch against netback.

All on one emulated processor: a rate tells what a frame costs guest,
hypervisor, backend and generator together. The guest's own counters per
frame show what the improvements save.
"""

import dataclasses
import re
import statistics
import time

from clickos_lab.xen import image
from clickos_lab.xen import toolstack
from tests.figures import table as _table
from tests.xen import guest

_WARM_S, _SECONDS = 3, 5
_IMPROVEMENTS = ('poll', 'keep_grants', 'fast_refill')
#: Addresses by number.
MAC = '00:16:3e:01:00:{:02x}'
#: Linux's generator puts frames straight into the backend's interface.
_PKTGEN = """
grep -q '^pktgen ' /proc/modules || insmod /root/pktgen.ko
cd /proc/net/pktgen
echo rem_device_all >kpktgend_0
echo add_device {vif} >kpktgend_0
for line in 'count 0' 'pkt_size 60' 'dst_mac {mac}' 'dst 10.0.0.2' \
        'clone_skb 0'; do
    echo "$line" >{vif}
done
(echo start >pgctrl &)
sleep {seconds}
echo stop >pgctrl
"""


@dataclasses.dataclass(frozen=True)
class Run:
    """A guest's figures: frames a second, and for 1,000 frames ..."""

    rate: float
    events: float
    grants: float
    cpu_ms: float


#: Names and units of a run's figures.
_FIGURES = (('rate', '', 'frames/s'),
            ('cpu_ms', ", guest's processor time for 1,000", 'ms'),
            ('events', ', events to and from the backend for 1,000', ''),
            ('grants', ', grants made and ended for 1,000', ''))


def measure(host, table):
    """Fill the table's part."""
    host.dom0.run('lab-net bridge br0')
    on = _runs(host, [])
    _add(table, 'all improvements', on, on)
    for off in ([name] for name in _IMPROVEMENTS):
        _add(table, f'{off[0]} off', _runs(host, off), on)
    _add(table, 'all off', _runs(host, _IMPROVEMENTS), on)
    _switches(host, table)


def _add(table, what, runs, on):
    for direction, run, best in zip(('sends', 'receives'), runs, on):
        for field, words, unit in _FIGURES:
            table.add(f'netfront {direction}, {what}{words}',
                      getattr(run, field), unit, getattr(best, field))


def _runs(host, off):
    words = ' '.join(f'netfront.{name}=off' for name in off)
    return [_middle([run(host, words) for _ in range(3)])
            for run in (_sent, _received)]


def _middle(runs):
    return Run(*(statistics.median(values) for values in
                 zip(*(dataclasses.astuple(run) for run in runs))))


def _run(host, made, what):
    """Read what a guest tells on its console, and its processor time."""
    last = made.console().splitlines()[-1]
    in_all = re.search(rf'in all .*{what} (\d+)', last)
    if not in_all:
        raise AssertionError(f'{made.name}: {last}')
    of_1000 = 1000 / int(in_all[1])
    told = re.search(r'events (\d+) to (\d+) from, '
                     r'grants (\d+) made (\d+) ended', last)
    sent, taken, granted, ended = map(int, told.groups())
    cpu_s = float(host.dom0.check(f'xl list {made.name}').split()[-1])
    return Run(average(made, what), (sent + taken) * of_1000,
               (granted + ended) * of_1000, cpu_s * 1e3 * of_1000)


def generator(host, name, number, words, vif='vif = ["bridge=br0,mac={}"]'):
    """Create a pkt-gen guest; return it.

    :param words: its orders
    """
    options = f'extra = "{words}"\n' + vif.format(MAC.format(number))
    text = image.config('pvh', name, image.PKT_GEN) + options + '\n'
    host.dom0.put_text(text, f'/root/{name}.cfg')
    made = guest.Guest(host.dom0, name, 'pvh')
    host.dom0.check(f'rm -f /var/log/xen/guest-{name}.log; '
                    f'xl create -q -e /root/{name}.cfg', timeout_s=120)
    made.domid = int(host.dom0.check(f'xl domid {name}'))
    return made


def average(made, what):
    """Return the average of the last lines of its console."""
    rates = [int(r) for r in re.findall(rf'{what} (\d+)/s', made.console())]
    used = rates[-_SECONDS:]
    return sum(used) / max(len(used), 1)


def _sent(host, words):
    made = generator(host, 'tx', 1, f'pkt-gen.function=tx {words}')
    time.sleep(_WARM_S + _SECONDS)
    run = _run(host, made, 'tx')
    made.destroy()
    return run


def _received(host, words):
    made = generator(host, 'rx', 2, words)
    state = f'/local/domain/{made.domid}/device/vif/0/state'
    host.dom0.check(f'lab-wait 30 {state} 4')
    host.dom0.check(_PKTGEN.format(
        vif=f'vif{made.domid}.0', mac=MAC.format(2),
        seconds=_WARM_S + _SECONDS), timeout_s=60)
    run = _run(host, made, 'rx')
    made.destroy()
    return run


def _switches(host, table):
    """Guest to guest, over a Linux bridge and over the switch."""
    words = f'pkt-gen.function=tx pkt-gen.dst={MAC.format(2)}'
    bridge = _table.middle(lambda: _pair(host, words), 3)
    table.add('guest to guest, netback and Linux bridge', bridge, 'frames/s',
              bridge)
    toolstack.start(host, 'valed')
    table.add('guest to guest, vale ports and valed', _table.middle(
        lambda: _pair(host, words, ''), 3), 'frames/s', bridge)


def _pair(host, words, *vif):
    """Return what arrives at a guest from another that sends at will."""
    to = generator(host, 'rx', 2, '', *vif)
    source = generator(host, 'tx', 1, words, *vif)
    ports = [] if not vif else [(to, 2), (source, 1)]
    for made, number in ports:
        _vale(host, f'attach vale0:{made.name} --segment 5 --kind xen '
              f'--domid {made.domid} --devid 0 --mac {MAC.format(number)}')
    time.sleep(_WARM_S + _SECONDS)
    rate = average(to, 'rx')
    for made in (source, to):
        made.destroy()
    for made, _ in ports:
        _vale(host, f'detach vale0:{made.name}')
    return rate


def _vale(host, arguments):
    folder = toolstack.FOLDER
    host.dom0.check(f'{folder}/vale-ctl --socket {folder}/valed.sock '
                    f'{arguments}')
