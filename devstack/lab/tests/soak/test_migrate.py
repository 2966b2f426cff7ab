# SPDX-License-Identifier: Apache-2.0
"""xl migrates guests by pre-copy, on one host, while packets flow."""

import re
import time

from clickos_lab import bounds
from clickos_lab.suites import progress
from tests import nat
from tests.soak import test_linux
from tests.xen import base
from tests.xen import guest

_MACS = ('00:16:3e:01:00:01', '00:16:3e:01:00:02')
_NETWORK = """
set -e
lab-net bridge br0; lab-net endpoint br0 near 10.1.1.9/24
lab-net bridge br1; lab-net endpoint br1 far 10.1.2.9/24
ip -n near route add default via 10.1.1.1
(while :; do ip netns exec far nc -l -p 7 -e cat; done) \\
    >/dev/null 2>&1 </dev/null &
"""
#: Sends a piece to an echo 20 times a second until it is enough. The answers
#: have to be the same.
_STREAM = """
rm -f /run/ended /run/enough
head -c 1000 /dev/urandom >/run/piece
(while [ ! -e /run/enough ]; do cat /run/piece; sleep 0.05; done \\
    | tee /run/sent | ip netns exec near nc 10.1.2.9 7 >/run/came
 cmp /run/sent /run/came; echo $? >/run/ended) \\
    >/run/stream.log 2>&1 </dev/null &
for _ in $(seq 150); do [ ! -s /run/came ] || exit 0; sleep 0.2; done
exit 1
"""
_AWAIT = 'touch /run/enough; until [ -e /run/ended ]; do sleep 0.2; done; ' \
    'cat /run/stream.log; exit $(cat /run/ended)'
_PINGS = """
ip netns exec {namespace} ping -D -i 0.05 {address} \\
    >/run/pings 2>&1 </dev/null &
echo $! >/run/pings.pid
sleep 1
"""
_LOG = '/var/log/xen/migrate.log'
_MIGRATE = "xl -vvv migrate -s '' {name} 'xl migrate-receive -e{options}' " \
    f'2>{_LOG}'


class _Pings:
    """Pings of a guest, whose longest silence is measured."""

    def _start_pings(self, namespace, address):
        self.dom0.check(_PINGS.format(namespace=namespace, address=address))

    def _silence_s(self):
        """End the pings; return the longest time without an answer."""
        self.dom0.check('sleep 2; kill -INT $(cat /run/pings.pid); sleep 0.5')
        found = re.findall(r'^\[([\d.]+)\] \d+ bytes from',
                           self.dom0.check('cat /run/pings'), re.MULTILINE)
        times_s = [float(text) for text in found]
        self.assertGreater(len(times_s), 100)
        return max(b - a for a, b in zip(times_s, times_s[1:]))

    def _migrate(self, name, options=''):
        """Migrate a guest; return its number and how long all took."""
        began_s = time.monotonic()
        self.dom0.check(_MIGRATE.format(name=name, options=options),
                        timeout_s=400)
        whole_s = time.monotonic() - began_s
        return int(self.dom0.check(f'xl domid {name}')), whole_s

    def _note(self, what, silence_s, whole_s):
        # Most of the time the guest ran while its pages were sent.
        bounds.hold('max_xl_migrate_silence_ratio', silence_s / whole_s)
        progress.note(f'{what}: {silence_s * 1000:.0f} ms of silence in '
                      f'{whole_s:.0f} s')


class ClickosTest(_Pings, base.XenTest):
    """A NAT of ClickOS with two stock vifs."""

    def test_a_connection_through_a_nat_survives(self):
        self.dom0.check(_NETWORK)
        one = guest.Guest(
            self.dom0, 'nat', 'pvh', 'vif = ['
            f'"bridge=br0,mac={_MACS[0]}",'
            f'"bridge=br1,mac={_MACS[1]}"]').create(watched=False)
        self.assertEqual(('Running', ''),
                         one.install(nat.config(*_MACS)))
        self.wait_for(lambda: self.dom0.run(
            'ip netns exec near ping -c 1 -W 1 10.1.1.1').status == 0)
        self.dom0.check(_STREAM)
        self._start_pings('near', '10.1.1.1')
        before = int(one.read_handler('passed.count'))
        one.domid, whole_s = self._migrate('nat')
        silence_s = self._silence_s()
        self.dom0.check(_AWAIT, timeout_s=300)
        self.assertGreater(int(one.read_handler('passed.count')), before)
        self._note('ClickOS with stock vifs', silence_s, whole_s)


class LinuxTest(_Pings, test_linux.LinuxTest):
    """A Linux guest with a stock vif and one of valed."""

    #: those of the class above
    test_frames_both_ways_on_both_devices = None
    test_a_stream_outlives_save_and_restore = None

    def test_a_stream_survives(self):
        self._start_stream()
        self._start_pings('a', test_linux.STOCK_IP)
        domid, whole_s = self._migrate('linux', ' -p')
        self._vale('detach vale0:linux')
        self._attach_guest(domid)
        self.dom0.check('xl unpause linux')
        silence_s = self._silence_s()
        self._await_stream()
        self._note('Linux with a stock vif', silence_s, whole_s)
