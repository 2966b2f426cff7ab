# SPDX-License-Identifier: Apache-2.0
"""A tenant: what every test makes before it can ask anything."""

import base64
import collections
import ipaddress

from tempest import config
from tempest.lib.common.utils import data_utils
from tempest.lib.common.utils import test_utils
from tempest.lib import exceptions

from clickos_tempest_plugin.common import waiters

CONF = config.CONF

#: (network, its subnet); the firewall takes the first address of each.
NETWORKS = {'left': '10.10.1.0/24', 'right': '10.10.2.0/24'}
FIREWALL = {'left': '10.10.1.1', 'right': '10.10.2.1', 'third': '10.10.3.1'}
_TERMINATES = 3
#: The addresses that Neutron gives away in a subnet, by place; FIREWALL has
#: others.
_POOL = (100, 199)

Network = collections.namedtuple('Network', 'id subnet_id')


def _pool(cidr):
    first, last = (str(ipaddress.ip_network(cidr)[at]) for at in _POOL)
    return {'start': first, 'end': last}


class Tenant:
    """One project with its VIM and networks.

    :param clients: Tempest's client manager of a member of the project
    :param cleanup: addCleanup of the test that needs the tenant
    :param image_ref: the image of servers that ask for none
    """

    def __init__(self, clients, cleanup, image_ref):
        self.clients = clients
        self.image_ref = image_ref
        self.tacker = clients.tacker.TackerClient()
        self.clickos = clients.clickos.ClickOSClient()
        self.servers = clients.servers_client
        self.vim_id = self._make_vim(cleanup)
        self.networks = {name: self.make_network(name, cidr, cleanup)
                         for name, cidr in NETWORKS.items()}
        self._operations = {}

    def _make_vim(self, cleanup):
        user = self.clients.credentials
        vim = self.tacker.create_vim(
            name=data_utils.rand_name('vim'), type='openstack',
            auth_url=CONF.identity.uri_v3, is_default=True,
            vim_project={'name': user.project_name,
                         'project_domain_name': user.project_domain_name},
            auth_cred={'username': user.username, 'password': user.password,
                       'user_domain_name': user.user_domain_name,
                       'cert_verify': 'False'})
        cleanup(self.tacker.delete_vim, vim['id'])
        return vim['id']

    def make_network(self, name, cidr, cleanup):
        """Make a network with a subnet; return a Network."""
        networks = self.clients.networks_client
        network = networks.create_network(
            name=data_utils.rand_name(name))['network']
        cleanup(networks.delete_network, network['id'])
        subnets = self.clients.subnets_client
        subnet = subnets.create_subnet(
            network_id=network['id'], cidr=cidr, ip_version=4,
            enable_dhcp=False, gateway_ip=None,
            allocation_pools=[_pool(cidr)])['subnet']
        cleanup(subnets.delete_subnet, subnet['id'])
        return Network(network['id'], subnet['id'])

    def onboard(self, csar, cleanup):
        """Upload a package and return its VNFD's id."""
        package_id = self.tacker.create_package()['id']
        cleanup(self._remove_package, package_id)
        self.tacker.upload_package(package_id, csar)
        return waiters.package(self.tacker, package_id)['vnfdId']

    def _remove_package(self, package_id):
        package = self.tacker.show_package(package_id)
        if package['operationalState'] == 'ENABLED':
            self.tacker.disable_package(package_id)
        self.tacker.delete_package(package_id)

    def create_vnf(self, vnfd_id, cleanup):
        """Make a VNF instance and return its id."""
        vnf = self.tacker.create_vnf(vnfd_id, data_utils.rand_name('fw'))
        cleanup(self._remove_vnf, vnf['id'])
        return vnf['id']

    def _remove_vnf(self, vnf_id):
        """Bring a VNF from whatever state it is in to nothing.

        A terminate that fails is tried again: what one test leaves, such as
        a taken address, would fail each test after it. The failure counts
        all the same.
        """
        ends = []
        for _ in range(_TERMINATES):
            last = self._operations.get(vnf_id)
            if last and waiters.operation(
                    self.tacker, last)['operationState'] == 'FAILED_TEMP':
                self.tacker.fail_operation(last)
            vnf = self.tacker.show_vnf(vnf_id)
            if vnf['instantiationState'] != 'INSTANTIATED':
                break
            ends.append(self.operate(vnf_id, 'terminate',
                                     terminationType='FORCEFUL'))
        try:
            self.tacker.delete_vnf(vnf_id)
        finally:
            for end in ends:
                completed(end)

    def instantiate(self, vnf_id, rules=None, **properties):
        """Instantiate a VNF of two networks and return the operation's end.

        :param rules: a firewall's property rules; None for the VNFD's default
        :param properties: others
        """
        return self.ended(self.start_vnf(vnf_id, rules, **properties))

    def start_vnf(self, vnf_id, rules=None, **properties):
        """Start to instantiate a VNF; return its id."""
        if rules is not None:
            properties['rules'] = rules
        params = {'additionalParams': {
            'clickos_properties': properties}} if properties else {}
        return self.start(
            vnf_id, 'instantiate', flavourId='simple',
            extVirtualLinks=[self.link(name, name) for name in NETWORKS],
            vimConnectionInfo=[{'id': 'vim', 'vimId': self.vim_id,
                                'vimType': 'openstack'}], **params)

    def link(self, point, name):
        """Return the link of a connection point with one of the networks."""
        network = self.networks[name]
        return {'id': name, 'resourceId': network.id, 'extCps': [{
            'cpdId': point, 'cpConfig': [{'cpProtocolData': [{
                'layerProtocol': 'IP_OVER_ETHERNET',
                'ipOverEthernet': {'ipAddresses': [{
                    'type': 'IPV4', 'subnetId': network.subnet_id,
                    'fixedAddresses': [FIREWALL[name]]}]}}]}]}]}

    def operate(self, vnf_id, operation, **body):
        """Start an operation and return its occurrence when it is over."""
        return self.ended(self.start(vnf_id, operation, **body))

    def start(self, vnf_id, operation, **body):
        """Start an operation; return the VNF's id."""
        self._operations[vnf_id] = self.tacker.start(vnf_id, operation,
                                                     **body)
        return vnf_id

    def ended(self, vnf_id):
        """Return the last operation on a VNF when it is over."""
        return waiters.operation(self.tacker, self._operations[vnf_id])

    def retry(self, vnf_id):
        """Retry the last operation on a VNF until it is over."""
        self.tacker.retry_operation(self._operations[vnf_id])
        return waiters.until(
            lambda: self.tacker.show_operation(self._operations[vnf_id]),
            lambda seen: seen['operationState'] in ('COMPLETED', 'FAILED'),
            'the operation completed', CONF.clickos.lcm_timeout)

    def terminate(self, vnf_id):
        """Terminate a VNF."""
        done = self.operate(vnf_id, 'terminate', terminationType='FORCEFUL')
        completed(done)

    def heal(self, vnf_id):
        """Heal every guest of a VNF, each by its id."""
        vnfcs = self.tacker.show_vnf(
            vnf_id)['instantiatedVnfInfo']['vnfcResourceInfo']
        completed(self.operate(vnf_id, 'heal', cause='test',
                               vnfcInstanceId=[v['id'] for v in vnfcs]))

    def heal_whole(self, vnf_id):
        """Heal a VNF as a whole: without naming a guest."""
        completed(self.operate(vnf_id, 'heal', cause='test'))

    def firewall(self, csar, rules, cleanup):
        """Onboard and instantiate a firewall; return its VNF's id."""
        vnf_id = self.create_vnf(self.onboard(csar, cleanup), cleanup)
        completed(self.instantiate(vnf_id, rules))
        return vnf_id

    def last_operation(self, vnf_id):
        """Return the id of the last operation that a test began."""
        return self._operations[vnf_id]

    def server_id(self, vnf_id):
        """Return the server of a VNF of one guest."""
        info = self.tacker.show_vnf(vnf_id)['instantiatedVnfInfo']
        (vnfc,) = info['vnfcResourceInfo']
        return vnfc['computeResource']['resourceId']

    def addresses(self, vnf_id):
        """Return {MAC: IPv4 address} of a VNF's ports."""
        return {port['mac_address']: port['fixed_ips'][0]['ip_address']
                for port in self._ports(vnf_id)}

    def leftovers(self, vnf_id):
        """List the servers and ports of a VNF that are there yet."""
        servers = self.servers.list_servers(name=vnf_id)['servers']
        return [port['name'] for port in self._ports(vnf_id)] + [
            server['name'] for server in servers]

    def _ports(self, vnf_id):
        return self.clients.ports_client.list_ports(
            description=f'clickos-vnf:{vnf_id}')['ports']

    def boot(self, name, ports, text, cleanup, **wanted):
        """Start a guest with a configuration and return the server's id.

        :param wanted: further arguments of the request
        """
        server_id = self.create_server(
            cleanup, name=name, user_data=encoded(text),
            networks=[{'port': port['id']} for port in ports], **wanted)
        waiters.server(self.servers, server_id)
        return server_id

    def create_server(self, cleanup, **wanted):
        """Ask Nova for a server and return its id, without waiting."""
        server_id = self.servers.create_server(**{
            'imageRef': self.image_ref,
            'flavorRef': CONF.compute.flavor_ref, **wanted})['server']['id']
        cleanup(waiters.gone, lambda: self.servers.show_server(server_id),
                f'server {server_id}')
        cleanup(test_utils.call_and_ignore_notfound_exc,
                self.servers.delete_server, server_id)
        return server_id

    def make_port(self, network, cleanup, **wanted):
        """Make a Neutron port for an endpoint outside of Nova."""
        ports = self.clients.ports_client
        port = ports.create_port(
            network_id=self.networks[network].id, **wanted)['port']
        cleanup(test_utils.call_and_ignore_notfound_exc, ports.delete_port,
                port['id'])
        return port


def encoded(text):
    """Return a configuration as Nova wants user_data."""
    return base64.b64encode(text.encode()).decode()


def completed(operation):
    """Check that an operation came to its end.

    :raises: with Tacker's reason, if it did not
    """
    if operation['operationState'] != 'COMPLETED':
        raise exceptions.TempestException(
            f'{operation["operation"]} is {operation["operationState"]}:'
            f' {operation.get("error", {}).get("detail")}')
