# SPDX-License-Identifier: Apache-2.0
"""``python -m clickos_lab.suites.lifecycle [ROUNDS]``: times of operations.

Starts the lab, and prints a table of the time from each request until its
operation is over. First one VNF at a time lives, ROUNDS times (5 by default).
Then many live at once. The share of the server is the time from Tacker's
request to Nova until the server is ACTIVE.
"""

import concurrent.futures
import os
import statistics
import sys
import time

from clickos_lab.demo import tacker
from clickos_lab import errors
from clickos_lab import lab as _lab
from clickos_lab import paths
from clickos_lab import settings as _settings
from clickos_lab.suites import firewalls
from clickos_lab.suites import on_lab
from clickos_lab.suites import progress

ROUNDS = 5
AT_ONCE = 20
_LOOK_S, _PATIENCE_S = 0.05, 120
_ASPECT = {'aspectId': 'capacity', 'numberOfSteps': 1}
_RULES = {'rules': ['allow udp', 'deny all']}


def main(arguments):
    """Start the lab, measure, stop; return the exit status."""
    state = paths.State()
    rounds = int(arguments[0]) if arguments else ROUNDS
    return on_lab.run(_lab.Lab(state), lambda: measure(state, rounds))


def measure(state, rounds):
    """Measure on a lab that is up."""
    life = Life(firewalls.Firewalls(state, _settings.Settings.load(state)))
    try:
        life.one_at_a_time(rounds)
        life.at_once(AT_ONCE)
    finally:
        life.print()
        life.fleet.sweep()


class Life:
    """Operations on firewalls, and how long each one took.

    :ivar fleet: the firewalls
    """

    def __init__(self, fleet):
        self.fleet = fleet
        self._taken_s = {}
        self.fleet.onboard()

    def one_at_a_time(self, rounds):
        """Let VNFs live, one after the other."""
        for number in range(rounds):
            self._live(self.fleet.create(number))

    def _live(self, vnf_id):
        with concurrent.futures.ThreadPoolExecutor(1) as pool:
            share = pool.submit(self._await_server, vnf_id)
            self._time('instantiate', self.fleet.instantiate, vnf_id)
            self._note('instantiate: share of the server', share.result())
        self._time('update of the rules', self._update, vnf_id)
        self._time('scale out by a guest', self.fleet.operate, vnf_id,
                   'scale', {'type': 'SCALE_OUT', **_ASPECT})
        self._time('scale in by a guest', self.fleet.operate, vnf_id,
                   'scale', {'type': 'SCALE_IN', **_ASPECT})
        self._time('heal', self.fleet.operate, vnf_id, 'heal',
                   {'cause': 'measured', 'vnfcInstanceId': [
                       each['id'] for each in self.fleet.tacker.show(vnf_id)[
                           'instantiatedVnfInfo']['vnfcResourceInfo']]})
        self._time('terminate', self._terminate, vnf_id)

    def at_once(self, count):
        """Instantiate many VNFs at once, then terminate them."""
        vnfs = [self.fleet.create(f'many-{number}')
                for number in range(count)]
        for name, operation in (('instantiate', self.fleet.instantiate),
                                ('terminate', self._terminate)):
            with concurrent.futures.ThreadPoolExecutor(count) as pool:
                self._time(f'{name} {count} at once', lambda: list(
                    pool.map(operation, vnfs)))

    def _await_server(self, vnf_id):
        """Return how long the server took, as this client sees it."""
        seen_s, end_s = None, time.monotonic() + _PATIENCE_S
        while time.monotonic() < end_s:
            server = next(iter(self.fleet.demo.compute.servers(name=vnf_id)),
                          None)
            if server is not None:
                seen_s = seen_s or time.monotonic()
                if server.status != 'BUILD':
                    return time.monotonic() - seen_s
            time.sleep(_LOOK_S)
        raise errors.LabError(f'VNF {vnf_id}: no server after '
                              f'{_PATIENCE_S} s')

    def _update(self, vnf_id):
        self.fleet.tacker.ask(
            'PATCH', f'{tacker.INSTANCES}/{vnf_id}',
            json={'metadata': {'clickos_properties': _RULES}})
        self.fleet.tacker.wait_verdict(vnf_id, _RULES)

    def _terminate(self, vnf_id):
        self.fleet.operate(vnf_id, 'terminate',
                           {'terminationType': 'FORCEFUL'})

    def _time(self, name, operation, *arguments):
        began_s = time.monotonic()
        operation(*arguments)
        self._note(name, time.monotonic() - began_s)

    def _note(self, name, taken_s):
        self._taken_s.setdefault(name, []).append(taken_s)

    def print(self):
        """Print the table."""
        print(f'{progress.commit()}, load average {os.getloadavg()[0]:.0f} '
              f'on {os.cpu_count()} cores')
        print('| operation | median, s | longest, s | times |\n'
              '|---|---|---|---|')
        for name, taken_s in self._taken_s.items():
            print(f'| {name} | {statistics.median(taken_s):.1f} '
                  f'| {max(taken_s):.1f} | {len(taken_s)} |')


if __name__ == '__main__':
    os.umask(0o077)
    sys.exit(main(sys.argv[1:]))
