# SPDX-License-Identifier: Apache-2.0
"""Many guests at once: each forwards after the last one has booted."""

from clickos_lab.xen import image
from tests.xen import base
from tests.xen import test_netback

_FIRST = 10
#: All in one script: a command over the network costs as much as a guest.
_CREATE = """
lab-net bridge br0
lab-net endpoint br0 near 10.1.0.1/16
for number in $(seq {first} {last}); do
    xl create -q -e /root/m$number.cfg
done
xl list | grep '^m[0-9]' >/run/guests
while read -r name domid _; do
    root=/local/domain/$domid/data/clickos
    lab-wait 60 $root/version 'clickos .*' >/dev/null
    xenstore-write $root/0/config/0 "$(cat /root/$name.click)" \
        $root/0/generation 1
done </run/guests
while read -r name domid _; do
    lab-wait 60 /local/domain/$domid/data/clickos/0/state 'Running 1'
done </run/guests
"""
_PING = """
for address in {addresses}; do
    ip netns exec near ping -q -c 1 -W 10 $address >/dev/null || echo $address
done
"""


@base.slow
class ManyTest(base.XenTest):

    guests = 12

    @classmethod
    def add_files(cls, contents):
        super().add_files(contents)
        for number in cls._numbers():
            mac = test_netback.mac_of(number)
            contents.add_text(
                image.config('pv', f'm{number}')
                + f'vif = ["bridge=br0,mac={mac}"]\n', f'/root/m{number}.cfg')
            contents.add_text(test_netback.answers(number),
                              f'/root/m{number}.click')

    @classmethod
    def _numbers(cls):
        return range(_FIRST, _FIRST + cls.guests)

    def test_each_answers_after_the_last_has_booted(self):
        script = _CREATE.format(first=_FIRST, last=self._numbers()[-1])
        states = self.dom0.check(f'set -e\n{script}',
                                 timeout_s=60 + 20 * self.guests)
        self.assertEqual(['Running 1'] * self.guests, states.splitlines())
        silent = self.dom0.check(
            _PING.format(addresses=' '.join(
                map(test_netback.address_of, self._numbers()))),
            timeout_s=60 + 10 * self.guests)
        self.assertEqual('', silent)
