# SPDX-License-Identifier: Apache-2.0
"""The steps of the demonstration."""

import json
import time

from clickos_client import api as clickos_client

from clickos_lab.cloud import sessions
from clickos_lab.cloud import vim
from clickos_lab.demo import cli
from clickos_lab.demo import machines
from clickos_lab.demo import tacker
from clickos_lab.demo import traffic
from clickos_lab import figures
from clickos_lab import log
from clickos_lab import settings as _settings
from clickos_lab import shell
from clickos_lab.vnf import csar

GATEWAYS = {'left': '10.10.1.1', 'right': '10.10.2.1'}
OPEN = ['allow icmp', 'allow tcp', 'deny all']
NO_HTTP = ['deny tcp dst port 80', *OPEN]
PINGS = 50
#: of each TCP, UDP and ICMP a third
REPLAYED = 300


class DemoRun:
    """One run of the demonstration, as the tenant ``demo``.

    :param target: the host of the VNF, a :class:`host.target.Target`
    """

    def __init__(self, state, target):
        settings = _settings.Settings.load(state)
        demo = sessions.demo(settings)
        self._state = state
        self._openstack = cli.Openstack(state, settings)
        self._tacker = tacker.Tacker(demo)
        self._clickos = clickos_client.Client(demo.session)
        self._demo = demo
        self._admin = sessions.admin(settings)
        self._machines = machines.Machines(state, self._admin, demo)
        self._target = target
        self._guests = target.guests
        self.figures = figures.Figures()
        self.vnf_id = None

    def run(self, keep):
        """Run all steps; with keep, all but the last."""
        self.remove()       # what an interrupted run may have left
        log.info(f'  guests are {self._guests.system()}')
        with log.step('1. the tenant on-boards the firewall package'):
            vnfd_id = self._onboard()
        with log.step('2. client and server, on the ports of Neutron'):
            self._attach_machines()
        with log.step('3. the tenant instantiates the firewall'):
            self._instantiate(vnfd_id)
        with log.step('4. traffic: ping, download, replayed capture'):
            self._ping()
            self._download()
            self._replay()
        with log.step('5. the tenant changes a rule under running traffic'):
            self._change()
        self._count_ports()
        if not keep:
            with log.step('6. the tenant terminates the firewall'):
                self._terminate()

    def remove(self):
        """Remove what a run has made, in whatever state it is."""
        self._tacker.sweep()
        self._machines.remove()

    # 1
    def _onboard(self):
        path = self._state.data / 'firewall.csar'
        csar.build('firewall', path, '--fresh-id',
                   '--image', self._target.host.image)
        package = self._openstack.json(
            'vnf', 'package', 'create', '--user-data', f'{tacker.MARK}=1')
        self._openstack('vnf', 'package', 'upload', '--path', path,
                        package['ID'])
        return self._tacker.wait_package(package['ID'])

    # 2
    def _attach_machines(self):
        make = self._machines.make_endpoint
        _, self.client = make('left', 'client', GATEWAYS['left'])
        self.server_port, self.server = make('right', 'server',
                                             GATEWAYS['right'])
        self._generator = self._machines.make_port('left', 'generator')
        self._machines.serve_files(self.server, self.server_port)
        log.info(f'  client {self.client.port}, server {self.server.port} '
                 f'({self.server_port.ip})')

    # 3
    def _instantiate(self, vnfd_id):
        vnf = self._openstack.json(
            'vnflcm', 'create', vnfd_id, '--name', f'{tacker.MARK}-firewall')
        self.vnf_id = vnf['ID']
        request = self._write('instantiate', self._request())
        began_s = time.monotonic()
        self._openstack('vnflcm', 'instantiate', self.vnf_id, request)
        self._tacker.wait_operation(self.vnf_id, 'INSTANTIATE')
        self.figures.measured('from the instantiate command to the VNF',
                              f'{time.monotonic() - began_s:.1f} s')
        self._server_id = self._tacker.server_id(self.vnf_id)
        guest = self._guests.find(self._server_id)
        log.info(f'  guest: domain {guest["domid"]}, '
                 f'{guest["memory_mib"]} MiB, server {self._server_id}')
        log.info(f'  {self._guests.seen(guest["domid"])}')
        host = self._admin.compute.get_server(self._server_id).compute_host
        self.figures.expect('compute host Nova chose for the image', host,
                            host == self._target.host.name)

    def _request(self):
        return {
            'flavourId': 'simple',
            'additionalParams': {'clickos_properties': {'rules': OPEN}},
            'vimConnectionInfo': [{'id': 'vim', 'vimType': 'openstack',
                                   'vimId': vim.find(self._demo)}],
            'extVirtualLinks': [self._link(name) for name in GATEWAYS]}

    def _link(self, name):
        network = self._demo.network.find_network(name)
        address = {'type': 'IPV4', 'subnetId': network.subnet_ids[0],
                   'fixedAddresses': [GATEWAYS[name]]}
        data = {'layerProtocol': 'IP_OVER_ETHERNET',
                'ipOverEthernet': {'ipAddresses': [address]}}
        return {'id': name, 'resourceId': network.id, 'extCps': [
            {'cpdId': name, 'cpConfig': [{'cpProtocolData': [data]}]}]}

    def _write(self, name, value):
        path = self._state.data / f'demo-{name}.json'
        path.write_text(json.dumps(value, indent=1))
        return path

    # 4
    def _ping(self):
        capture = traffic.Capture(self._machines, self.server, 'icmp',
                                  2 * PINGS)
        sent, received, rtt_ms = traffic.ping(
            self.client, self.server_port.ip, PINGS)
        seen = capture.lines()
        for line in seen[:2]:
            log.info(f'  server\'s veth: {line[:90]}')
        self.figures.expect('ping through the guest, answered of sent',
                            f'{received}/{sent}', received == PINGS)
        self.figures.expect('ICMP packets seen by tcpdump', len(seen),
                            len(seen) == 2 * PINGS)
        self.figures.measured('round trip, average', f'{rtt_ms} ms')

    def _download(self):
        status, size, speed = traffic.download(self.client,
                                               self.server_port.ip)
        self.figures.expect('HTTP download, bytes', size,
                            status == 0 and size == machines.DOWNLOAD_BYTES)
        self.figures.measured('download rate', f'{speed:.1f} MB/s')

    def _replay(self):
        generator, server = self._generator, self.server_port
        pcap = self._state.data / 'demo.pcap'
        # The server's own answers would be counted too.
        shell.output(['ip', '-n', self.server.name, 'route', 'add',
                      'blackhole', f'{generator.ip}/32'])
        self._machines.pkt_gen(
            '-f', 'pcap-make', '--pcap', pcap, '-n', REPLAYED,
            '-s', f'{generator.ip}:4000', '-d', f'{server.ip}:7')
        before = self._counts()
        self._machines.pkt_gen(
            '-f', 'tx', '--pcap', pcap, '-r', 1000,
            '-i', f'{generator.switch}:{generator.port}',
            '--segment', generator.segment, '--mac', generator.mac,
            *(f'--allow={cidr}' for cidr in generator.allow),
            '-S', generator.mac, '-D', self._guest_mac('left'))
        delta = {name: count - before[name]
                 for name, count in self._counts().items()}
        self.figures.expect('replayed packets the guest received',
                            delta['received'], delta['received'] == REPLAYED)
        self.figures.expect('of them passed (TCP, ICMP)', delta['passed'],
                            delta['passed'] == REPLAYED * 2 // 3)
        dropped = delta['received'] - delta['passed']
        self.figures.expect('of them dropped (UDP)', dropped,
                            dropped == REPLAYED // 3)

    def _counts(self):
        return {name: int(self._clickos.read(self._server_id,
                                             f'{name}.count'))
                for name in ('received', 'passed')}

    def _guest_mac(self, network):
        for port in self._demo.network.ports(
                device_id=self._server_id,
                network_id=self._demo.network.find_network(network).id):
            return port.mac_address

    # 5
    def _change(self):
        before = self._guests.identity(self._server_id)
        ping = self._machines.ping(self.client, self.server_port.ip, '0.02')
        wanted = {'rules': NO_HTTP}
        self._openstack('vnflcm', 'update', self.vnf_id, '--I', self._write(
            'update', {'metadata': {'clickos_properties': wanted}}))
        verdict = self._tacker.wait_verdict(self.vnf_id, wanted)
        self.figures.expect('verdict on the added rule', verdict['verdict'],
                            verdict['verdict'] == 'accepted')
        status, size, _ = traffic.download(self.client, self.server_port.ip)
        self.figures.expect(
            'HTTP after the change', 'refused' if status else f'{size} bytes',
            status != 0 and size == 0)
        hits = self._openstack('clickos', 'handler', 'read', '--vnf',
                               self.vnf_id, 'fw.hits')
        count, _, rule = hits.partition('\n')[0].partition('\t')
        self.figures.expect(f'packets the tenant reads for "{rule}"', count,
                            rule == NO_HTTP[0] and int(count) > 0)
        sent, received, _ = ping.result()
        self.figures.expect('ping during the change, lost of sent',
                            f'{sent - received}/{sent}',
                            sent == received and sent > PINGS)
        same = self._guests.identity(self._server_id) == before
        self.figures.expect('same guest, same boot',
                            'yes' if same else 'no', same)

    def _count_ports(self):
        for machine in (self.client, self.server):
            counters = machine.counters()
            self.figures.measured(
                f'switch port {machine.port}, packets in, out',
                f'{counters["rx_packets"]}, {counters["tx_packets"]}')

    # 6
    def _terminate(self):
        self._openstack('vnflcm', 'terminate', '--termination-type',
                        'FORCEFUL', self.vnf_id)
        self._tacker.wait_operation(self.vnf_id, 'TERMINATE')
        left = self._guests.leftovers(self._server_id)
        self.figures.expect('left on the host (guest, store, switch port)',
                            ', '.join(left) or 'nothing', not left)
        mark = f'clickos-vnf:{self.vnf_id}'
        ports = [p.id for p in self._demo.network.ports(description=mark)]
        self.figures.expect('left in Neutron', ', '.join(ports) or 'nothing',
                            not ports)
        servers = [s.id for s in self._demo.compute.servers()]
        self.figures.expect('left in Nova', ', '.join(servers) or 'nothing',
                            not servers)
        self._remove_machines()

    def _remove_machines(self):
        names = (self.client.name, self.server.name)
        self.remove()
        left = [n for n in names if self.client.exists()
                or self.server.exists()]
        self.figures.expect('namespaces left', ', '.join(left) or 'nothing',
                            not left)
