# SPDX-License-Identifier: Apache-2.0
"""``python -m clickos_lab.suites.floor [ROUNDS]``: what Nova itself needs.

Starts a lab with a second compute host, of Nova's fake driver, and prints how
long servers take until they are ACTIVE there and on the host of the lab: one
at a time, by turns, then many together. Each has two ports, made beforehand.
The image of the fake host has one byte, and no trait that only our hosts have.
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
from clickos_lab import heat
from clickos_lab import lab as _lab
from clickos_lab import paths
from clickos_lab import settings as _settings
from clickos_lab.suites import on_lab
from clickos_lab.suites import progress

_ROUNDS, _AT_ONCE = 10, 20
_NETWORKS = ('left', 'right')
_PATIENCE_S = 600
_NAME = 'floor'
_USER_DATA = base64.b64encode(
    b'FromDevice(0) -> c :: Counter -> ToDevice(1);').decode()


def main(arguments):
    """Start the lab, measure, stop; return the exit status."""
    state = paths.State()
    rounds = int(arguments[0]) if arguments else _ROUNDS
    return on_lab.run(_lab.Lab(state, has_heat=True),
                      lambda: _run(state, rounds),
                      lambda: heat.install(state))


def _run(state, rounds):
    settings = _settings.Settings.load(state)
    try:
        measure(settings, rounds)
    finally:
        heat.forget(state, settings)


def measure(settings, rounds):
    """Measure on a lab that is up."""
    floor = Floor(sessions.admin(settings))
    try:
        for _ in range(rounds):
            for host in floor.hosts:
                floor.run(host, 1)
        for host in floor.hosts:
            floor.run(host, _AT_ONCE)
    finally:
        floor.print()
        floor.sweep()
        floor.remove()


class Floor:
    """Servers of the administrator, who may name a host."""

    def __init__(self, admin):
        self._admin, self._taken_s = admin, {}
        compute.lift_quotas(admin, admin.current_project_id)
        self.sweep()
        self.remove()
        self._networks = [admin.network.find_network(each).id
                          for each in _NETWORKS]
        image = admin.image.create_image(
            _NAME, data=b'0', disk_format='raw', container_format='bare',
            wait=True)
        flavor = admin.compute.create_flavor(
            **{**compute.FLAVOR, 'name': _NAME})
        ours = hosts.PROCESS
        #: what servers of a host are made from
        self.hosts = {
            fake_host.HOST: {
                'availability_zone': f'nova:{fake_host.HOST}',
                'image_id': image.id, 'flavor_id': flavor.id},
            ours.name: {
                'availability_zone': f'{ours.zone}:{ours.name}',
                'image_id': admin.image.find_image(ours.image).id,
                'flavor_id': admin.compute.find_flavor(
                    compute.FLAVOR['name']).id}}

    def run(self, host, count):
        """Start servers of a host together, wait for them, end them."""
        ports = [[self._port(network) for network in self._networks]
                 for _ in range(count)]
        began_s = time.monotonic()
        for pair in ports:
            self._admin.compute.create_server(
                **self.hosts[host], name=_NAME, user_data=_USER_DATA,
                networks=[{'port': port} for port in pair])
        compute.wait_active(self._admin, _NAME, count, _PATIENCE_S)
        taken_s = time.monotonic() - began_s
        self._taken_s.setdefault((host, count), []).append(taken_s)
        self.sweep()

    def _port(self, network_id):
        return self._admin.network.create_port(
            name=_NAME, network_id=network_id).id

    def sweep(self):
        """Remove all servers and ports."""
        compute.delete_servers(self._admin, _NAME, _PATIENCE_S)
        for port in self._admin.network.ports(name=_NAME):
            self._admin.network.delete_port(port)

    def remove(self):
        """Remove what servers were made from, of an earlier run, too."""
        for image in self._admin.image.images(name=_NAME):
            self._admin.image.delete_image(image)
        flavor = self._admin.compute.find_flavor(_NAME)
        if flavor:
            self._admin.compute.delete_flavor(flavor)

    def print(self):
        """Print the table."""
        print(f'{progress.commit()}, load average {os.getloadavg()[0]:.0f} '
              f'on {os.cpu_count()} cores')
        print('| host, servers together | median, s | longest, s | times |\n'
              '|---|---|---|---|')
        for (host, count), taken_s in self._taken_s.items():
            print(f'| {host}, {count} | {statistics.median(taken_s):.2f} '
                  f'| {max(taken_s):.2f} | {len(taken_s)} |')


if __name__ == '__main__':
    os.umask(0o077)
    sys.exit(main(sys.argv[1:]))
