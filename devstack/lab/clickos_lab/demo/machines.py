# SPDX-License-Identifier: Apache-2.0
"""The machines on both sides of the VNF, and the packet generator's port.

The tenant makes the Neutron ports. The administrator binds them to this
machine, wherever the VNF runs: Neutron does not let a tenant choose a host.
The switch's settings then come from Neutron's binding alone.
"""

import dataclasses
import json
import os
import random
import subprocess
import sys
import time

from clickos_lab.config import hosts
from clickos_lab.demo import http_server
from clickos_lab import errors
from clickos_lab.host import endpoint
from clickos_lab import pings
from clickos_lab import shell

HTTP_PORT = 80
DOWNLOAD_BYTES = 10 * 1024 * 1024
_PORT_MARK = 'clickos-demo'
#: the beginning of the namespaces' names
_NAMES = 'demo'


@dataclasses.dataclass(frozen=True)
class Binding:
    """A Neutron port and its binding."""

    id: str
    mac: str
    ip: str
    prefix_length: str
    switch: str
    segment: int
    port: str
    allow: list


class Machines:
    """Client, server and generator of one run, removed by :meth:`remove`."""

    def __init__(self, state, admin, demo):
        self._state = state
        self._admin = admin
        self._demo = demo
        self._processes = []
        self._prefix = f'{_NAMES}{random.randrange(0x1000):03x}'

    def make_port(self, network, name):
        """Make a Neutron port as the tenant and have it bound."""
        network = self._demo.network.find_network(network)
        port = self._demo.network.create_port(
            network_id=network.id, name=f'{_PORT_MARK}-{name}',
            description=_PORT_MARK)
        bound = self._admin.network.update_port(
            port.id, binding_host_id=hosts.PROCESS.name)
        if bound.binding_vif_type != 'vale':
            raise errors.LabError(
                f'port {port.id}: bound as {bound.binding_vif_type}, not vale;'
                ' see log/neutron.log in the state folder')
        fixed = bound.fixed_ips[0]
        subnet = self._demo.network.get_subnet(fixed['subnet_id'])
        details = bound.binding_vif_details
        return Binding(
            port.id, bound.mac_address, fixed['ip_address'],
            subnet.cidr.partition('/')[2], details['vale_switch'],
            details['vale_segment'], details['vale_port'],
            [a['ip'] for a in details['vale_allowed']])

    def make_endpoint(self, network, name, gateway):
        """Make a port and a namespace on it; return (binding, endpoint)."""
        binding = self.make_port(network, name)
        made = endpoint.Endpoint(self._state, f'{self._prefix}-{name}',
                                 binding.port, binding.switch)
        made.add(binding.segment, binding.mac,
                 f'{binding.ip}/{binding.prefix_length}', gateway,
                 binding.allow)
        return binding, made

    def start(self, command, output=subprocess.PIPE):
        """Start a program; it ends with the machines."""
        process = subprocess.Popen(
            [str(word) for word in command], stdin=subprocess.DEVNULL,
            stdout=output, stderr=subprocess.STDOUT, text=True)
        self._processes.append(process)
        return process

    @staticmethod
    def ping(machine, address, interval_s):
        """Start a ping that is answered; it ends with its namespace."""
        ping = pings.Ping(machine.command('ping', '-n', '-i', interval_s,
                                          address))
        ping.wait()
        return ping

    def serve_files(self, machine, binding):
        """Start an HTTP server with a file of random bytes."""
        folder = self._state.data / 'demo-www'
        folder.mkdir(exist_ok=True)
        (folder / 'random').write_bytes(os.urandom(DOWNLOAD_BYTES))
        with open(self._state.log / 'demo-http.log', 'ab') as log:
            self.start(machine.command(
                sys.executable, http_server.__file__, binding.ip, HTTP_PORT,
                folder), output=log)
        deadline_s = time.monotonic() + 10
        while machine.run('curl', '-s', '-o', '/dev/null', '-I',
                          f'http://{binding.ip}/').returncode:
            if time.monotonic() > deadline_s:
                raise errors.LabError(f'{machine.name}: no HTTP server')
            time.sleep(0.1)

    def pkt_gen(self, *arguments):
        """Run pkt-gen; return its figures."""
        return json.loads(shell.output([
            self._state.binary('pkt-gen'), '-o', 'json',
            f'--socket={self._state.run}/valed/valed.sock', *arguments]))

    def remove(self):
        """Remove everything, also namespaces and ports of earlier runs."""
        for process in self._processes:
            if process.poll() is None:
                process.terminate()
        endpoint.Endpoint.remove_all(self._state, _NAMES)
        for port in self._demo.network.ports(description=_PORT_MARK):
            self._demo.network.delete_port(port.id, ignore_missing=True)
