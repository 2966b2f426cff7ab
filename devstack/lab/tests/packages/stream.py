# SPDX-License-Identifier: Apache-2.0
"""Pings through a guest of the machine: how many it forwards, and loses."""

import re
import time

_GUEST = """
FromDevice(0) -> there :: Counter -> Queue -> ToDevice(1);
FromDevice(1) -> Queue -> ToDevice(0);
"""
_TARGET = '10.0.0.2'
_INTERVAL_S = 0.01
_LOG = '/root/stream.log'
#: Left and right are machines; only the guest leads from one to the other.
_MACHINES = """
set -e
for side in left:1 right:2; do
    name=${side%:*} number=${side#*:}
    ip netns add $name
    ip link add $name type veth peer name eth0 netns $name
    ip link set $name up
    ip -n $name address add 10.0.0.$number/24 dev eth0
    ip -n $name link set eth0 up
done
"""
_ATTACH = """
set -e
for side in left:1 right:2; do
    vale-ctl attach vale0:${side%:*} --kind veth --ifname ${side%:*} \
        --segment ${side#*:}
done
"""


class Stream:
    """A guest between two machines, and 100 pings a second through it.

    :param machine: :class:`debian_root.DebianRoot` with both daemons running
    """

    def __init__(self, machine, name='wire'):
        self._machine, self._name = machine, name

    def start(self):
        """Make machines and guest, and ping until :meth:`stop`."""
        self._machine.run(_MACHINES)
        self.attach()
        (self._machine.root / 'root/wire.click').write_text(_GUEST)
        self._machine.run(
            f'cosmos create --name {self._name} --config /root/wire.click '
            '--vif port=a,segment=1 --vif port=b,segment=2')
        self._machine.run(
            f'touch {_LOG} && systemd-run --quiet --unit=stream --property='
            f'StandardOutput=file:{_LOG} ip netns exec left ping -n '
            f'-i {_INTERVAL_S} {_TARGET}')
        self.await_more()

    def attach(self):
        """Attach the machines."""
        self._machine.run(_ATTACH)

    def answered(self):
        """Return the numbers of the pings that were answered, in order."""
        text = (self._machine.root / _LOG[1:]).read_text()
        return [int(n) for n in re.findall(r'icmp_seq=(\d+) ttl', text)]

    def forwarded(self):
        """Return the frames that the guest has counted, one way."""
        return int(self._machine.run(f'cosmos read {self._name} there.count'))

    def await_more(self, timeout_s=20):
        """Wait until a second's pings more were answered than so far.

        :raises TimeoutError: if they are not
        """
        wanted = len(self.answered()) + round(1 / _INTERVAL_S)
        deadline_s = time.monotonic() + timeout_s
        while len(self.answered()) < wanted:
            if time.monotonic() > deadline_s:
                raise TimeoutError(
                    f'{self._name}: {len(self.answered())} pings answered, '
                    f'{wanted} expected after {timeout_s} s')
            time.sleep(0.1)

    def stop(self):
        """End the pings, the guest and the machines."""
        self._machine.run(
            f'systemctl stop stream; cosmos destroy {self._name}; '
            'vale-ctl detach vale0:left; vale-ctl detach vale0:right; '
            'ip netns delete left; ip netns delete right')


def lost(answered, since=0):
    """Return how many pings after one were lost, and the longest silence.

    Pings after the last answer are still under way and do not count.

    :param answered: numbers of answered pings
    :param since: the number of the ping before
    :returns: count and seconds
    """
    numbers = sorted({since, *(n for n in answered if n > since)})
    gaps = [after - before - 1
            for before, after in zip(numbers, numbers[1:])]
    return sum(gaps), max(gaps, default=0) * _INTERVAL_S
