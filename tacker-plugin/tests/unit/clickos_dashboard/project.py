# SPDX-License-Identifier: Apache-2.0
"""A project of several VNFs on a row of networks, with a chain."""

import uuid

from openstack_dashboard import api

from tests.unit.clickos_dashboard import cloud
from tests.unit.clickos_dashboard import test_chains

#: The networks, each VNF between two of them.
NETWORKS = ('left', 'middle', 'right')
HOPS = ('ids', 'dpi')
SFC = '/v2.0/sfc/'


def key(*words):
    """Return the UUID of what the words name."""
    return str(uuid.uuid5(uuid.NAMESPACE_DNS, ' '.join(map(str, words))))


def vnf(name, guests=1, **changes):
    """Return a VNF as Tacker shows it."""
    return cloud.vnf(
        id=key('vnf', name), vnfInstanceName=name, metadata={},
        instantiatedVnfInfo={'flavourId': 'simple', 'vnfcResourceInfo': [
            {'id': key('vnfc', name, n), 'vduId': 'VDU1',
             'computeResource': {'resourceId': key('server', name, n)}}
            for n in range(guests)]}, **changes)


def ports(project_id, name, *points, guests=1):
    """Return Neutron's ports of a VNF.

    :param points: (connection point, network)
    """
    return [api.neutron.Port({
        'id': key('port', name, n, point), 'name': f'VDU1-{n}-{point}',
        'description': f'clickos-vnf:{key("vnf", name)}',
        'project_id': project_id, 'device_id': key('server', name, n),
        'mac_address': mac(name, n, point), 'status': 'ACTIVE',
        'network_id': key('network', network),
        'fixed_ips': [{'ip_address': f'10.0.{at}.{n + 5}'}]})
        for n in range(guests) for at, (point, network) in enumerate(points)]


def mac(name, guest, point):
    """Return the MAC address of a port."""
    digits = key('mac', name, guest, point).replace('-', '')
    return ':'.join(('fa', '16', '3e', *(digits[at:at + 2]
                                         for at in (0, 2, 4))))


def networks(names=NETWORKS):
    """Return networks as Horizon's API gives them."""
    return [api.neutron.Network({
        'id': key('network', name), 'name': name, 'status': 'ACTIVE',
        'admin_state_up': True, 'subnets': []}) for name in names]


def counted(server_id, points, packets, dropped=0):
    """Return {request: answer of clickos-api} for a guest's ports.

    :param points: MAC addresses
    """
    return {f'GET /v1/servers/{server_id}/ports': {'ports': [
        {'id': each, 'mac_address': each, 'link_up': True, 'counters': {
            'rx_packets': packets, 'rx_bytes': 100 * packets,
            'tx_packets': 2 * packets, 'tx_bytes': 200 * packets,
            'dropped_full': dropped}} for each in points]}}


class Project:
    """The project; fill() puts it into a test's cloud.

    :ivar points: {name of a VNF: ((connection point, network), ...)}
    """

    def __init__(self, test):
        self._test = test
        left, middle, right = NETWORKS
        self.guests = {'nat': 3}
        self.points = {
            'firewall': (('left', left), ('right', middle)),
            'nat': (('inside', middle), ('outside', right)),
            'ids': (('in', left), ('out', left)),
            'dpi': (('in', left), ('out', left)),
            'monitor': (('tap', right),),
            'tunnel': (('near', left), ('far', right))}

    def add(self, count):
        """Add firewalls."""
        for n in range(count):
            self.points[f'firewall-{n:03}'] = (('left', 'left'),
                                               ('right', 'middle'))

    def fill(self, packets=1000):
        """Put it into the cloud."""
        answers = self._test.cloud.answers
        answers['GET /vnflcm/v1/vnf_instances'] = [
            vnf(name, self.guests.get(name, 1)) for name in self.points]
        answers['GET /vnflcm/v1/vnf_lcm_op_occs'] = []
        project_id = self._test.tenant.id
        found = [port for name, points in self.points.items()
                 for port in ports(project_id, name, *points,
                                   guests=self.guests.get(name, 1))]
        api.neutron.port_list.return_value = found
        api.neutron.network_list_for_tenant.return_value = networks()
        self._chain(answers)
        self.count(packets)

    def count(self, packets):
        """Let each port have counted this number of packets."""
        for at, (name, points) in enumerate(self.points.items()):
            for n in range(self.guests.get(name, 1)):
                self._test.cloud.answers.update(counted(
                    key('server', name, n),
                    [mac(name, n, point) for point, _network in points],
                    packets * (at + 1), packets if name == 'nat' else 0))

    def _chain(self, answers):
        answers.update(test_chains.answers(HOPS))
        test_chains.with_rules(answers, {
            'id': test_chains.RULE, 'ethertype': 'IPv4', 'protocol': 'tcp',
            'source_ip_prefix': '10.0.0.0/24',
            'destination_port_range_min': 80,
            'destination_port_range_max': 80})
        answers[f'GET {SFC}port_pairs'] = {'port_pairs': [
            {'id': f'pair-{hop}', 'ingress': key('port', hop, 0, 'in'),
             'egress': key('port', hop, 0, 'out')} for hop in HOPS]}
        for group in answers[f'GET {SFC}port_pair_groups'][
                'port_pair_groups']:
            group['port_pairs'] = [f'pair-{group["name"]}']
        network = {'network': {'id': key('network', 'left'), 'name': 'left'}}
        answers[f'GET /v2.0/networks/{key("network", "left")}'] = network
        for hop in HOPS:
            for point in ('in', 'out'):
                port = key('port', hop, 0, point)
                answers[f'GET /v2.0/ports/{port}'] = {'port': {
                    'id': port, 'network_id': key('network', 'left')}}
