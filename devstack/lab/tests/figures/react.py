# SPDX-License-Identifier: Apache-2.0
"""From a packet without a guest to its answer, through the guest it makes."""

import re
import statistics

from clickos_lab.xen import toolstack

_ROUNDS = 7
_CONFIG = """
FromDevice(0) -> c :: Classifier(12/0806 20/0001, -);
c[0] -> ARPResponder($ADDRESS $MAC) -> q :: Queue -> ToDevice(0);
c[1] -> MarkIPHeader(14) -> ICMPPingResponder -> EtherMirror -> q;
"""
_FILE = """
memory = {memory}
config = "react.click"
vif = [ "segment=7" ]
"""
#: Of the pool, and another size.
_SIZES = {'of the pool': 8, 'new': 9}


def measure(host, table):
    """Fill the table's part."""
    toolstack.start(host, 'valed')
    toolstack.start(host, 'cosmosd', pool=1, preconnected=('vifs = 1',))
    host.dom0.check(f"""
{toolstack.command('vale-ctl', 'attach', 'vale0:near', '--kind', 'tap',
                   '--segment', 7, '--ifname', 'near')}
ip addr add 10.0.9.9/16 dev near; ip link set near up""")
    host.dom0.put_text(_CONFIG, '/root/react.click')
    for number, (kind, memory) in enumerate(_SIZES.items()):
        host.dom0.put_text(_FILE.format(memory=memory), '/root/react.cfg')
        network = f'10.0.{number}'
        react = toolstack.command(
            'cosmos', 'on-demand', '/root/react.cfg', '--network',
            f'{network}.0/24', '--valed', f'{toolstack.FOLDER}/valed.sock')
        pid = host.dom0.check(
            f'{react} >/root/react.log 2>&1 & echo $!').strip()
        pings = [_ping(host, f'{network}.{at + 1}') for at in range(_ROUNDS)]
        first, later = (statistics.median(ms) for ms in zip(*pings))
        table.add(f'first packet to its answer, guest {kind}', first, 'ms')
        table.add(f'a later one, guest {kind}', later, 'ms', first)
        # It destroys its guests.
        host.dom0.check(
            f'kill {pid}; while kill -0 {pid} 2>&-; do sleep 1; done')


def _ping(host, address):
    """Return the time of the first round trip, and the median of others.

    The first one asks for the address by ARP, too.
    """
    # Until the pool has its guest again.
    host.dom0.check('sleep 20')
    out = host.dom0.check(f'ping -c 5 -i 0.5 -W 10 {address}', timeout_s=60)
    times = [float(ms) for ms in re.findall(r'time=([0-9.]+) ms', out)]
    return times[0], statistics.median(times[1:])
