# SPDX-License-Identifier: Apache-2.0
"""A VNF that Tacker has deployed as shipped, with a host on each network.

::

    host [eth0] === veth === valed [network] === [0] guest

The hosts are those of :mod:`testbed`, so the scenarios run unchanged. Tacker
makes the ports, so the switch judges the guest's frames as it does for a
tenant. The hosts' own frames pass: they are no guests.
"""

import itertools
import os
import time

from clickos_client import api as clickos_client
from cosmos_client import CosmosClient

from clickos_lab.cloud import sessions
from clickos_lab.cloud import vim
from clickos_lab.config import neutron
from clickos_lab.demo import tacker
from clickos_lab import errors
from clickos_lab.host import uplinks
from clickos_lab import settings as _settings
from clickos_lab import shell
from clickos_lab.vnf import csar
from clickos_lab.vnf import rendering
from clickos_lab.vnf import testbed

#: begins the names of VNFs and networks
_MARK = 'deployed'
#: The kernel removes a link some time after its namespace, so no name of an
#: interface is used twice.
_LINKS = itertools.count()
_ANSWER_S, _INSTALL_MS = 60, 60000
#: clickos-api takes 100 requests of a project in a second.
_POLL_S = 0.1
#: of the ports that Neutron numbers by itself; the hosts have other addresses
_POOL = {4: ('200', '250'), 6: ('200', '2ff')}


class Cloud:
    """A lab that is up, and the compute host on which guests are to run.

    :param host: hosts.ComputeHost; its family of images chooses it
    """

    def __init__(self, state, host):
        settings = _settings.Settings.load(state)
        self.state = state
        self.demo = sessions.demo(settings)
        self.admin = sessions.admin(settings)
        self.tacker = tacker.Tacker(self.demo)
        self.clickos = clickos_client.Client(self.demo.session)
        self.cosmosd = CosmosClient(str(state.run / host.agent_socket),
                                    timeout_s=_ANSWER_S)
        self.image = host.image
        self._host = host

    def vale_ctl(self, *arguments):
        """Run the switch's command line on this machine."""
        return shell.output([
            self.state.binary('vale-ctl'),
            f'--socket={self.state.run}/valed/valed.sock', *arguments])

    def require_host(self, server_id):
        """Check that Nova chose the host.

        :raises LabError: if a server runs elsewhere
        """
        found = self.admin.compute.get_server(server_id).compute_host
        if found != self._host.name:
            raise errors.LabError(
                f'server {server_id}: runs on {found}, not {self._host.name}')


class CloudBench(testbed.VnfTestbed):
    """A VNF under test in a :class:`Cloud`."""

    def __init__(self, name, cloud):
        super().__init__(name)
        self._cloud = cloud
        self._networks = {}

    def _connect(self, undo):
        for index, interface in enumerate(self.interfaces):
            self._networks[interface.cp] = self._make_network(interface, undo)
            self._attach(index, interface, undo)

    def _make_network(self, interface, undo):
        """Make a network of the tenant with a subnet for each version."""
        api = self._cloud.demo.network
        network = api.create_network(
            name=f'{_MARK}-{self.name}-{interface.cp}')
        undo.callback(api.delete_network, network)
        subnets = {version: api.create_subnet(
            network_id=network.id, cidr=cidr, ip_version=version,
            enable_dhcp=False, gateway_ip=None,
            allocation_pools=[_pool(cidr, version)]).id
            for version, cidr in ((4, interface.net), (6, interface.net6))
            if cidr}
        return network.id, subnets

    def _attach(self, index, interface, undo):
        """Give a host its eth0, which leads to the switch."""
        host = self.namespace(interface.cp)
        outer = f'vc{os.getpid()}-{next(_LINKS)}'
        port = f'{neutron.SWITCH}:{host}'
        testbed.ip('link', 'add', 'eth0', 'netns', host, 'address',
                   testbed.host_mac(index), 'type', 'veth', 'peer', 'name',
                   outer)
        testbed.whole_frames(host, 'eth0')
        testbed.ip('link', 'set', outer, 'addrgenmode', 'none')
        testbed.ip('link', 'set', outer, 'up')
        segment = self._cloud.admin.network.get_network(
            self._networks[interface.cp][0]).provider_segmentation_id
        self._cloud.vale_ctl(
            'attach', port, '--kind=veth', f'--ifname={outer}',
            f'--segment={segment}', f'--mac={testbed.host_mac(index)}')
        undo.callback(self._cloud.vale_ctl, 'detach', port)
        uplinks.Uplinks(self._cloud.state).reach(segment)

    def _start_vnf(self, undo):
        self._deploy(self._on_board(undo), undo)
        info = self._cloud.tacker.show(self.vnf_id)['instantiatedVnfInfo']
        (vnfc,) = info['vnfcResourceInfo']
        self.server_id = vnfc['computeResource']['resourceId']
        self._cloud.require_host(self.server_id)
        return Handlers(self._cloud, self.server_id)

    def _on_board(self, undo):
        """Upload the package; return its VNFD's id."""
        path, ask = self.folder / 'vnf.csar', self._cloud.tacker.ask
        csar.build(self.name, path, '--fresh-id', '--image',
                   self._cloud.image)
        place = f'{tacker.PACKAGES}/%s' % ask(
            'POST', tacker.PACKAGES, json={'userDefinedData': {}})['id']
        undo.callback(lambda: self._cloud.tacker.remove_package(
            ask('GET', place)))
        ask('PUT', f'{place}/package_content', data=path.read_bytes(),
            headers={'Content-Type': 'application/zip'})
        return self._cloud.tacker.wait_package(place.rpartition('/')[2])

    def _deploy(self, vnfd_id, undo):
        """Let Tacker instantiate the VNF."""
        ask = self._cloud.tacker.ask
        self.vnf_id = ask('POST', tacker.INSTANCES, json={
            'vnfdId': vnfd_id, 'vnfInstanceName': f'{_MARK}-{self.name}'})[
                'id']
        undo.callback(self._cloud.tacker.remove_vnf, self.vnf_id)
        ask('POST', f'{tacker.INSTANCES}/{self.vnf_id}/instantiate',
            json=self._request())
        self._cloud.tacker.wait_operation(self.vnf_id, 'INSTANTIATE')

    def _request(self):
        return {
            'flavourId': rendering.FLAVOUR,
            'additionalParams': {
                'clickos_properties': rendering.wanted(self.scenario)},
            'vimConnectionInfo': [{'id': 'vim', 'vimType': 'openstack',
                                   'vimId': vim.find(self._cloud.demo)}],
            'extVirtualLinks': list(map(self._link, self.interfaces))}

    def _link(self, interface):
        network_id, subnets = self._networks[interface.cp]
        wanted = {4: interface.ip, 6: interface.ip6}
        addresses = [{'type': f'IPV{version}', 'subnetId': subnet,
                      'fixedAddresses': [wanted[version]]}
                     for version, subnet in subnets.items()]
        data = {'layerProtocol': 'IP_OVER_ETHERNET',
                'ipOverEthernet': {'macAddress': interface.mac,
                                   'ipAddresses': addresses}}
        return {'id': interface.cp, 'resourceId': network_id, 'extCps': [
            {'cpdId': interface.cp,
             'cpConfig': [{'cpProtocolData': [data]}]}]}

    def _install(self):
        """Install the guest's configuration again.

        Tacker keeps the configuration of a VNF, so the host's operator does
        it.
        """
        found = self._cloud.clickos.show_state(self.server_id)['configuration']
        self._cloud.cosmosd.call('router-install', uuid=self.server_id,
                                 config=found['config'],
                                 config_name=found['config_name'],
                                 timeout_ms=_INSTALL_MS)


class Handlers:
    """A guest's handlers as its tenant has them."""

    def __init__(self, cloud, server_id):
        self._cloud, self._server_id = cloud, server_id

    def read(self, handler):
        """Return a read handler's value; a parameter follows a blank.

        clickos-api takes no parameter, so the host's operator reads such a
        handler.
        """
        name, _, parameter = handler.partition(' ')
        if parameter:
            return self._cloud.cosmosd.call('handler-read',
                                            uuid=self._server_id, name=name,
                                            param=parameter)['value'].strip()
        time.sleep(_POLL_S)
        return self._cloud.clickos.read(self._server_id, name).strip()

    def write(self, handler, value):
        """Write a handler.

        :raises ClickOSError: with the element's words if it refuses
        """
        self._cloud.clickos.write(self._server_id, handler, value)


def _pool(cidr, version):
    """Return the addresses that Neutron may give to ports."""
    begin = cidr.partition('/')[0].removesuffix('0')
    first, last = _POOL[version]
    return {'start': begin + first, 'end': begin + last}
