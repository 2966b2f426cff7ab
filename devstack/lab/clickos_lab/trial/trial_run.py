# SPDX-License-Identifier: Apache-2.0
"""The steps of ``make try``."""

import textwrap

from clickos_lab import figures
from clickos_lab import log
from clickos_lab.trial import place as _place

NO_HTTP = f'deny tcp dst port 80, {_place.OPEN}'
#: Requests of the first ping, and seconds between two.
_PINGS, _INTERVAL_S = 20, 0.02
_OK = 200
#: Elements of the configuration that count packets.
_COUNTERS = {'left_in': 'frames from the client',
             'right_in': 'frames from the server',
             'received': 'packets before the rules',
             'passed': 'packets that a rule allowed'}


class TrialRun:
    """One run.

    :param place: where, a :class:`place.Place` without a guest
    """

    def __init__(self, place):
        self._place = place
        self.figures = figures.Figures()

    def run(self):
        """Run all steps; the expectations are in :attr:`figures`."""
        place = self._place
        with log.step('3. a firewall guest between them'):
            place.create_guest()
        with log.step('4. traffic: ping and HTTP'):
            self._traffic()
        with log.step('5. a rule changes under a running ping'):
            self._change()
        with log.step('6. counters of the guest and of the switch'):
            self._count()

    def _traffic(self):
        ping = self._place.ping(_INTERVAL_S)
        ping.wait(_PINGS)
        self._expect_all('ping through the guest, lost of sent', ping)
        self._expect_http('HTTP', _OK)

    def _change(self):
        place = self._place
        before = place.identity()
        ping = place.ping(_INTERVAL_S)
        ping.wait(_PINGS)
        self._set(NO_HTTP)
        self._expect_http('HTTP with the rule', None)
        self._hits = place.command('cosmos', 'read', _place.GUEST, 'fw.hits')
        self._set(_place.OPEN)
        self._expect_http('HTTP without the rule', _OK)
        self._expect_all('ping during both changes, lost of sent', ping)
        same = place.identity() == before
        self.figures.expect('same guest, same process',
                            'yes' if same else 'no', same)

    def _set(self, rules):
        self._place.command('cosmos', 'write', _place.GUEST, 'fw.config',
                            rules)

    def _expect_all(self, what, ping):
        sent, received, rtt_ms = ping.result()
        self.figures.expect(what, f'{sent - received}/{sent}',
                            sent == received >= _PINGS)
        self.figures.measured('  round trip, average', f'{rtt_ms} ms')

    def _expect_http(self, what, wanted):
        found = self._place.http()
        self.figures.expect(what, found or 'no answer', found == wanted)

    def _count(self):
        count, _, rule = self._hits.partition('\n')[0].partition('\t')
        self.figures.expect(f'packets that met "{rule}"', count,
                            NO_HTTP.startswith(rule) and int(count) > 0)
        counts = {name: int(self._place.read(f'{name}.count'))
                  for name in _COUNTERS}
        self.figures.expect(
            'packets that the firewall denied',
            counts['received'] - counts['passed'],
            counts['received'] - counts['passed'] == int(count))
        for name, about in _COUNTERS.items():
            print(f'    {name + ".count":<15}{counts[name]:>8}  {about}')
        print(textwrap.indent(self._place.command('vale-ctl', 'ports'),
                              '    '), flush=True)
