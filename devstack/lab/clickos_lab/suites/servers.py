# SPDX-License-Identifier: Apache-2.0
"""``python -m clickos_lab.suites.servers [COUNT ...]``: times of servers.

Starts the lab, and prints a table. First servers live one at a time, by
step. Then one of them gets writes of a handler by clickos-api, also right
after a service was killed and started again. At last COUNT servers start with
one request (by default 100).

Nova calls a server ACTIVE after its port, so packets pass by then. The step
spawn is all that the driver does, its wait for Neutron included; the other
steps are Nova's.
"""

import base64
import contextlib
import http
import os
import re
import statistics
import sys
import time

from keystoneauth1 import exceptions

from clickos_lab.cloud import compute
from clickos_lab.cloud import sessions
from clickos_lab.config import hosts
from clickos_lab import errors
from clickos_lab import lab as _lab
from clickos_lab import paths
from clickos_lab import settings as _settings
from clickos_lab.suites import on_lab
from clickos_lab.suites import progress

_ROUNDS, _WRITES, _MANY = 10, 300, 100
_LOOK_S, _PATIENCE_S = 0.1, 1800
#: What the write of a handler needs.
_KILLED = ('cosmosd', 'clickos-agent', 'clickos-api', 'keystone', 'rabbitmq',
           'mariadb')
_NAME = 'measured'
_CONFIG = 'Idle -> c :: Counter -> Discard;'
#: Of nova-compute's log, by the name of the step.
_STEP = r'instance: ({})\] Took ([\d.]+) seconds to (spawn|build)'
_CIDR = '10.77.0.0/16'


def main(arguments):
    """Start the lab, measure, stop; return the exit status."""
    state = paths.State()
    counts = [int(word) for word in arguments] or [_MANY]
    lab = _lab.Lab(state)
    return on_lab.run(lab, lambda: measure(lab, state, counts))


def measure(lab, state, counts):
    """Measure on a lab that is up."""
    settings = _settings.Settings.load(state)
    demo = sessions.demo(settings)
    compute.lift_quotas(sessions.admin(settings), demo.current_project_id)
    with _network(demo) as network:
        servers = Servers(state, demo, network)
        try:
            servers.one_at_a_time(_ROUNDS)
            servers.write(_WRITES)
            for name in _KILLED:
                servers.recover(lab, name)
            for count in counts:
                servers.at_once(count)
        finally:
            servers.print()
            servers.sweep()


@contextlib.contextmanager
def _network(demo):
    """Make a network with room for many servers."""
    network = demo.network.create_network(name=_NAME)
    try:
        demo.network.create_subnet(
            name=_NAME, network_id=network.id, ip_version=4, cidr=_CIDR,
            is_dhcp_enabled=False, gateway_ip=None)
        yield network
    finally:
        demo.network.delete_network(network)


@contextlib.contextmanager
def running(state, demo):
    """Give a server of the tenant that runs, for other suites."""
    with _network(demo) as network:
        found = Servers(state, demo, network)
        try:
            found.one_at_a_time(1)
            yield next(demo.compute.servers(name=_NAME))
        finally:
            found.sweep()


class Servers:
    """Servers of the tenant, and how long each step took."""

    def __init__(self, state, demo, network):
        self._log = state.log / 'nova-compute.log'
        self._demo, self._taken_s = demo, {}
        self._wanted = {
            'name': _NAME, 'networks': [{'uuid': network.id}],
            'image_id': demo.image.find_image(hosts.PROCESS.image).id,
            'flavor_id': demo.compute.find_flavor(
                compute.FLAVOR['name']).id,
            'user_data': base64.b64encode(_CONFIG.encode()).decode()}

    def one_at_a_time(self, rounds):
        """Start servers, one after the other; all but the last end."""
        for _ in range(rounds):
            self.sweep()
            began_s = time.monotonic()
            server = self._demo.compute.create_server(**self._wanted)
            self._note('server: answer of the API',
                       time.monotonic() - began_s)
            self._await(1)
            self._note('server: ACTIVE', time.monotonic() - began_s)
            for taken_s, step in self._steps(server.id):
                self._note(f'server: {step} (log of nova-compute)', taken_s)

    def _steps(self, server_id):
        found = re.findall(_STEP.format(server_id), self._log.read_text())
        return [(float(taken_s), step) for _, taken_s, step in found]

    def write(self, count):
        """Write a handler of the existing server, again and again."""
        server = next(self._demo.compute.servers(name=_NAME))
        for _ in range(count):
            began_s = time.monotonic()
            self._reset(server)
            self._note('handler write', time.monotonic() - began_s)

    def recover(self, lab, name):
        """Kill a service, start it again, and write until it succeeds."""
        server = next(self._demo.compute.servers(name=_NAME))
        began_s = time.monotonic()
        lab.outage(name, 'kill', 0)
        while not self._is_reset(server):
            if time.monotonic() > began_s + _PATIENCE_S:
                raise errors.LabError(f'no write after a kill of {name}')
            time.sleep(_LOOK_S)
        self._note(f'handler write after a kill of {name}',
                   time.monotonic() - began_s)

    def _reset(self, server):
        """Write the handler; return the HTTP status."""
        return self._demo.session.put(
            f'/v1/servers/{server.id}/handlers/c.reset', json={'value': ''},
            endpoint_filter={'service_type': 'clickos',
                             'interface': 'public'}).status_code

    def _is_reset(self, server):
        try:
            return self._reset(server) == http.HTTPStatus.OK
        except exceptions.ClientException:
            return False

    def at_once(self, count):
        """Start many servers by one request."""
        self.sweep()
        began_s = time.monotonic()
        self._demo.compute.create_server(**self._wanted, min_count=count)
        self._await(count)
        self._note(f'{count} servers at once', time.monotonic() - began_s)

    def _await(self, count):
        compute.wait_active(self._demo, _NAME, count, _PATIENCE_S)

    def sweep(self):
        """Remove all servers."""
        compute.delete_servers(self._demo, _NAME, _PATIENCE_S)

    def _note(self, name, taken_s):
        self._taken_s.setdefault(name, []).append(taken_s)

    def print(self):
        """Print the table."""
        print(f'{progress.commit()}, load average {os.getloadavg()[0]:.0f} '
              f'on {os.cpu_count()} cores')
        print('| step | p50, s | p99, s | times |\n|---|---|---|---|')
        for name, taken_s in self._taken_s.items():
            ordered = sorted(taken_s)
            p99 = ordered[(len(ordered) * 99 - 1) // 100]
            print(f'| {name} | {statistics.median(ordered):.3f} '
                  f'| {p99:.3f} | {len(ordered)} |')


if __name__ == '__main__':
    os.umask(0o077)
    sys.exit(main(sys.argv[1:]))
