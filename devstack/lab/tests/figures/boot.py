# SPDX-License-Identifier: Apache-2.0
"""From unpause to Running, against a guest that does nothing."""

import itertools

from clickos_lab.xen import image
from tests.figures import table as _table
from tests.xen import guest
from tests.xen import test_netback

#: Ten rules, and something for each of them to do.
FIREWALL = """
InfiniteSource(LIMIT 0) -> CheckIPHeader(OFFSET 0, VERBOSE false)
-> fw :: IPFilter(
allow tcp && dst port 22, allow tcp && dst port 80,
allow tcp && dst port 443, allow udp && dst port 53,
deny src net 10.0.0.0/8, deny src net 172.16.0.0/12,
allow icmp type echo, allow udp && src port 123,
deny dst host 192.0.2.7, allow all) -> Discard;
"""
_FIRST = test_netback.address_of(9)
_numbers = itertools.count(1)


def measure(host, table):
    """Fill the table's part."""
    for kind in image.KINDS:
        empty = _table.middle(lambda: _empty_us(host, kind))
        table.add(f'unpause to first key, empty guest, {kind}', empty, 'us')
        table.add(f'unpause to Running, 10 rules, {kind}',
                  _table.middle(lambda: _running_us(host, kind)), 'us', empty)
    table.add('xl create to first packet, pvh, one netback vif',
              _table.middle(lambda: _first_packet_ms(host), 3), 'ms')


def _paused(host, kind, program, options=''):
    """Create a guest that does not run yet."""
    name = f'fig{next(_numbers)}'
    text = image.config(kind, name, program) + options + '\n'
    path = f'/root/{name}.cfg'
    host.dom0.put_text(text, path)
    host.dom0.check(f'xl create -q -e -p {path}', timeout_s=120)
    made = guest.Guest(host.dom0, name, kind, options)
    made.domid = int(host.dom0.check(f'xl domid {name}'))
    return made


def _empty_us(host, kind):
    made = _paused(host, kind, 'empty')
    return _boot_us(host, made, f'/local/domain/{made.domid}/data/empty')


def _running_us(host, kind):
    made = _paused(host, kind, image.CLICKOS)
    made.put({'0/config/0': FIREWALL, '0/generation': '1'})
    return _boot_us(host, made, made.path('0/state'))


def _boot_us(host, made, path):
    out = host.dom0.check(f'/root/timing boot {made.domid} {path} Running')
    made.destroy()
    return float(out)


def _first_packet_ms(host):
    """From the start of ``xl create`` until a ping that runs is answered."""
    host.dom0.run('lab-net bridge br0; '
                  'lab-net endpoint br0 near 10.1.0.1/24')
    mac, text = test_netback.mac_of(9), test_netback.answers(9)
    name = f'fig{next(_numbers)}'
    config = image.config('pvh', name) + f'vif = ["bridge=br0,mac={mac}"]\n'
    host.dom0.put_text(config, f'/root/{name}.cfg')
    host.dom0.put_text(text, f'/root/{name}.click')
    out = host.dom0.check(f"""
ip -n near neigh replace {_FIRST} lladdr {mac} dev eth0
ip netns exec near ping -D -i 0.02 {_FIRST} >/run/first &
began=$EPOCHREALTIME
xl create -q -e -p /root/{name}.cfg
root=/local/domain/$(xl domid {name})/data/clickos
xenstore-write $root/0/config/0 "$(cat /root/{name}.click)" \
    $root/0/generation 1
xl unpause {name}
until grep -q 'bytes from' /run/first; do sleep 0.02; done
kill $!
sed -n 's/^\\[\\([0-9.]*\\)\\] .*bytes from.*/\\1/p' /run/first | head -1
echo $began; xl destroy {name}
""", timeout_s=120).split()
    return (float(out[0]) - float(out[1])) * 1e3
