# SPDX-License-Identifier: Apache-2.0
"""``python -m clickos_lab.suites.floor [ROUNDS]``: what Nova itself needs.

Starts a lab with a second compute host, of Nova's fake driver, and prints how
long servers take until they are ACTIVE there and on the host of the lab: one
at a time, in turn, then many at once. Both have two ports, which exist before.
The image of the fake host has one byte; it has no trait that only ours have.
"""

import base64
import os
import statistics
import sys
import time

from clickos_lab.cloud import compute
from clickos_lab.cloud import sessions
from clickos_lab.config import heat as fake_host
from clickos_lab.config import hosts
from clickos_lab import errors
from clickos_lab import heat
from clickos_lab import lab as _lab
from clickos_lab import paths
from clickos_lab import settings as _settings
from clickos_lab.suites import on_lab
from clickos_lab.suites import progress

_ROUNDS, _AT_ONCE = 10, 20
_NETWORKS = ('left', 'right')
_LOOK_S, _PATIENCE_S = 0.05, 600
_NAME = 'floor'
_USER_DATA = base64.b64encode(
    b'FromDevice(0) -> c :: Counter -> ToDevice(1);').decode()


def main(arguments):
    """Start the lab, measure, stop; return the exit status."""
    state = paths.State()
    rounds = int(arguments[0]) if arguments else _ROUNDS
    return on_lab.run(_lab.Lab(state, has_heat=True),
                      lambda: measure(state, rounds),
                      lambda: heat.install(state))


def measure(state, rounds):
    """Measure on a lab that is up."""
    settings = _settings.Settings.load(state)
    floor = Floor(sessions.admin(settings))
    try:
        for _ in range(rounds):
            for host in floor.hosts:
                floor.run(host, 1)
        for host in floor.hosts:
            floor.run(host, _AT_ONCE)
    finally:
        floor.sweep()
        floor.remove()
        floor.print()
        heat.forget(state, settings)


class Floor:
    """Servers of the administrator, who may name a host."""

    def __init__(self, admin):
        self._admin, self._taken_s = admin, {}
        project_id = admin.current_project_id
        admin.compute.update_quota_set(project_id, instances=-1, cores=-1,
                                       ram=-1)
        admin.network.update_quota(project_id, ports=-1)
        self._networks = [admin.network.find_network(each).id
                          for each in _NETWORKS]
        self._image = admin.image.create_image(
            _NAME, data=b'0', disk_format='raw', container_format='bare',
            wait=True)
        self._flavor = admin.compute.create_flavor(
            **{**compute.FLAVOR, 'name': _NAME})
        ours = hosts.PROCESS
        #: what servers of a host are made from
        self.hosts = {
            fake_host.HOST: {
                'availability_zone': f'nova:{fake_host.HOST}',
                'image_id': self._image.id, 'flavor_id': self._flavor.id},
            ours.name: {
                'availability_zone': f'{ours.zone}:{ours.name}',
                'image_id': admin.image.find_image(ours.image).id,
                'flavor_id': admin.compute.find_flavor(
                    compute.FLAVOR['name']).id}}

    def run(self, host, count):
        """Start servers of a host at once, wait for them, end them."""
        ports = [[self._port(network) for network in self._networks]
                 for _ in range(count)]
        began_s = time.monotonic()
        for pair in ports:
            self._admin.compute.create_server(
                **self.hosts[host], name=_NAME, user_data=_USER_DATA,
                networks=[{'port': port} for port in pair])
        self._await(count)
        taken_s = time.monotonic() - began_s
        self._taken_s.setdefault((host, count), []).append(taken_s)
        self.sweep()

    def _port(self, network_id):
        return self._admin.network.create_port(
            name=_NAME, network_id=network_id).id

    def _await(self, count):
        """Wait until this number of servers is ACTIVE.

        :raises LabError: if one is in ERROR, or after ten minutes
        """
        end_s = time.monotonic() + _PATIENCE_S
        while time.monotonic() < end_s:
            servers = list(self._admin.compute.servers(name=_NAME))
            for each in servers:
                if each.status == 'ERROR':
                    raise errors.LabError(f'server: {each.fault}')
            if [each.status for each in servers] == ['ACTIVE'] * count:
                return
            time.sleep(_LOOK_S)
        raise errors.LabError(f'{count} servers: not ACTIVE in '
                              f'{_PATIENCE_S} s')

    def sweep(self):
        """Remove all servers and ports."""
        end_s = time.monotonic() + _PATIENCE_S
        for server in self._admin.compute.servers(name=_NAME):
            self._admin.compute.delete_server(server)
        while next(self._admin.compute.servers(name=_NAME), None):
            if time.monotonic() > end_s:
                raise errors.LabError('servers that were deleted stay')
            time.sleep(_LOOK_S)
        for port in self._admin.network.ports(name=_NAME):
            self._admin.network.delete_port(port)

    def remove(self):
        """Remove what servers were made from."""
        self._admin.image.delete_image(self._image)
        self._admin.compute.delete_flavor(self._flavor)

    def print(self):
        """Print the table."""
        print(f'{progress.commit()}, load average {os.getloadavg()[0]:.0f} '
              f'on {os.cpu_count()} cores')
        print('| host, servers at once | median, s | longest, s | times |\n'
              '|---|---|---|---|')
        for (host, count), taken_s in self._taken_s.items():
            print(f'| {host}, {count} | {statistics.median(taken_s):.2f} '
                  f'| {max(taken_s):.2f} | {len(taken_s)} |')


if __name__ == '__main__':
    os.umask(0o077)
    sys.exit(main(sys.argv[1:]))
