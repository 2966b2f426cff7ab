# SPDX-License-Identifier: Apache-2.0
"""Traffic from network namespaces that are attached to the switch."""

import json
import re
import signal
import subprocess

from clickos_client import neutron_rpc
from clickos_client import pings
from tempest import config

from clickos_tempest_plugin.common import host
from clickos_tempest_plugin.common import tenant as clickos_tenant
from clickos_tempest_plugin.common import waiters

CONF = config.CONF

#: The machines outside of Nova are there, wherever the guest is.
_HOST = host.Host()
PING_INTERVAL_S = 0.05
HTTP_PORT = 80
ECHO_PORT = 7
#: for the answer of a ping or of a connection
PATIENCE_S = 20
#: What udhcpc of busybox prints.
LEASE = re.compile(r'lease of ([0-9.]+) obtained')
#: sends as many bytes as asked for in the path, http://server/1000
HTTP_SERVER = '''
import http.server
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.send_header("Content-Length", self.path[1:])
        self.end_headers()
        self.wfile.write(b"x" * int(self.path[1:]))
http.server.ThreadingHTTPServer(("", %d), Handler).serve_forever()
'''
#: returns each byte
ECHO_SERVER = '''
import socketserver
class Handler(socketserver.BaseRequestHandler):
    def handle(self):
        while data := self.request.recv(4096):
            self.request.sendall(data)
class Server(socketserver.ThreadingTCPServer):
    request_queue_size = 1024
    daemon_threads = True
Server(("", %d), Handler).serve_forever()
'''
#: opens connections to several hosts, tells so, and uses them until a signal;
#: then each has to return a byte within some seconds
CONNECTIONS = '''
import select, signal, socket, sys, time
hosts = sys.argv[4:]
port, number, patience_s = map(int, sys.argv[1:4])
signals = []
signal.signal(signal.SIGINT, lambda *found: signals.append(found))
alive = set()
for n in range(number):
    end = (hosts[n % len(hosts)], port)
    try:
        alive.add(socket.create_connection(end, timeout=patience_s))
    except OSError:
        pass
opened = len(alive)
print("opened", opened, flush=True)
def answers(each):
    try:
        return bool(each.recv(4096))
    except OSError:
        return False
last = False
while True:
    last = bool(signals)
    waiting = set()
    for each in alive:
        try:
            each.send(b".")
            waiting.add(each)
        except OSError:
            pass
    sent, alive = len(waiting), set()
    end_s = time.monotonic() + patience_s
    while waiting and time.monotonic() < end_s:
        ready = select.select(list(waiting), [], [], 0.1)[0]
        alive |= {each for each in ready if answers(each)}
        waiting -= set(ready)
    if last:
        break
    time.sleep(0.1)
print("alive", len(alive), flush=True)
'''


class Machine:
    """A machine on a network of VLANs.

    Its addresses are those of a Neutron port, its segment is the network's.

    :param admin: an administrator's clients, for the segment
    :param port: of Neutron
    :param reach: length of the prefix, and further arguments
    """

    def __init__(self, admin, port, cleanup, reach=('24',)):
        self.port_id = port['id']
        #: of the namespace, and of the switch port, as Neutron names it
        self.name = f'p{port["id"][:11]}'
        self.mac = port['mac_address']
        self.ip = port['fixed_ips'][0]['ip_address']
        self.ips = [self.ip]
        segment = admin.networks_client.show_network(
            port['network_id'])['network']['provider:segmentation_id']
        cleanup(_HOST.run, 'endpoint-remove', self.name)
        length, *more = reach
        _HOST.run('endpoint-add', self.name, '--segment', str(segment),
                  '--mac', self.mac, '--address', f'{self.ip}/{length}',
                  *more)
        self._cleanup = cleanup

    def bind(self, admin):
        """Tell Neutron on which host the machine is, as Nova would.

        A chain with hops on another host has to know it.
        """
        admin.ports_client.update_port(
            self.port_id, **{'binding:host_id': _host_name(admin)})

    def add_addresses(self, *addresses):
        """Take further addresses, with their prefix lengths."""
        for address in addresses:
            self.run('ip', 'address', 'add', address, 'dev', 'eth0', 'nodad')
            self.ips.append(address.partition('/')[0])

    def run(self, *command, **kwargs):
        """Run a command in the namespace."""
        return _HOST.run('endpoint-exec', self.name, *command, **kwargs)

    def start(self, *command):
        """Start a command in the namespace; it ends with the test."""
        process = subprocess.Popen(
            _HOST.command('endpoint-exec', self.name, *command),
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, text=True)
        self._cleanup(_stop, process)
        return process

    def counters(self):
        """Return the counters of the switch port."""
        return json.loads(
            _HOST.run('endpoint-counters', self.name).stdout)

    def can_ping(self, other):
        """Return whether an echo request is answered."""
        return self.can_ping_address(other.ip)

    def can_ping_address(self, address):
        """Return whether one of two echo requests to an address is answered.

        It takes no longer than the answer of the second one.
        """
        return self._ping(address, PATIENCE_S)

    def is_cut_off(self, other):
        """Return whether echo requests get no answer within a second."""
        return not self._ping(other.ip, 1)

    def _ping(self, address, patience_s):
        return self.run('ping', '-n', '-q', '-c', '2', '-i', '0.2', '-W',
                        str(patience_s), address,
                        check=False).returncode == 0

    def lease(self):
        """Return the address that a DHCP server offers, '' for none."""
        done = self.run('udhcpc', '-i', 'eth0', '-n', '-q', '-f', '-t', '10',
                        '-T', '1', '-s', '/bin/true', check=False)
        found = LEASE.search(done.stdout + done.stderr)
        return found.group(1) if found else ''

    def ping(self, other):
        """Start a ping that runs until a test takes its result.

        Its first request is answered. Its output has the time of each answer.
        """
        running = pings.Running(self.start(
            'ping', '-n', '-D', '-i', str(PING_INTERVAL_S), other.ip))
        running.wait()
        return running

    def flood(self, other, rate):
        """Start echo requests at a rate a second, until the test ends."""
        return self.start('ping', '-n', '-q', '-i', str(1 / rate), other.ip)

    def serve_http(self):
        """Start an HTTP server and wait until it answers."""
        self.start('python3', '-c', HTTP_SERVER % HTTP_PORT)
        waiters.until(
            lambda: self.run('curl', '-s', '-o', '/dev/null',
                             'http://127.0.0.1/1', check=False).returncode,
            lambda status: status == 0, 'HTTP server')

    def serve_echo(self):
        """Start a TCP server that returns what it gets."""
        self.start('python3', '-c', ECHO_SERVER % ECHO_PORT)
        waiters.until(
            lambda: self.run('ss', '-Hltn', f'sport = :{ECHO_PORT}').stdout,
            bool, 'echo server')

    def connect(self, other, number):
        """Open TCP connections and use them until a test counts them.

        They go to all addresses of the other machine in turn.
        """
        return Connections(self.start(
            'python3', '-c', CONNECTIONS, str(ECHO_PORT), str(number),
            str(PATIENCE_S), *other.ips), number)

    def download(self, other, size_bytes, timeout_s=30):
        """Return how many bytes of a download came, 0 if it failed."""
        done = self.run(
            'curl', '-s', '-o', '/dev/null', '--connect-timeout', '2',
            '--max-time', str(timeout_s), '-w', '%{size_download}',
            f'http://{other.ip}/{size_bytes}', check=False,
            timeout_s=timeout_s + 10)
        return int(done.stdout) if done.returncode == 0 else 0


def _host_name(admin):
    """Return the name of the process host that the machines are on."""
    zones = {service['host']: service['zone'] for service in
             admin.services_client.list_services(
                 binary='nova-compute')['services']}
    name, = (agent['host'] for agent in
             admin.network_agents_client.list_agents(
                 agent_type=neutron_rpc.AGENT_TYPE)['agents']
             if agent['configurations'].get('host_kind') == 'process'
             and zones.get(agent['host']) != CONF.clickos.second_zone)
    return name


class Endpoint(Machine):
    """A machine on one of the tenant's networks, behind the firewall.

    :param tenant: tenant.Tenant
    :param admin: an administrator's clients
    :param network: 'left' or 'right'
    :param wired: the networks are one, joined by a wire, so the machine has
        no gateway
    :param allow: further networks whose addresses it may use
    """

    def __init__(self, tenant, admin, network, cleanup, wired=False,
                 allow=()):
        self.gateway = clickos_tenant.FIREWALL[network]
        super().__init__(
            admin, tenant.make_port(network, cleanup), cleanup,
            [*(('16',) if wired else ('24', '--gateway', self.gateway)),
             *(f'--allow={each}' for each in allow)])


class Connections:
    """TCP connections in use; all of them are open."""

    def __init__(self, process, number):
        self._process = process
        self.number = number
        found = process.stdout.readline().split()
        if found != ['opened', str(number)]:
            raise AssertionError(f'{number} connections: {found}')

    def lost(self):
        """Stop; return how many do not answer any more."""
        self._process.send_signal(signal.SIGINT)
        output, _ = self._process.communicate(timeout=3 * PATIENCE_S)
        word, alive = output.split()[-2:]
        if word != 'alive':
            raise AssertionError(f'connections: {output[-500:]}')
        return self.number - int(alive)


def _stop(process):
    if process.poll() is None:
        process.terminate()
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
    process.stdout.close()
