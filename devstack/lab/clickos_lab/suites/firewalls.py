# SPDX-License-Identifier: Apache-2.0
"""Firewalls of the tenant, all of one package, to measure with."""

import concurrent.futures

from clickos_lab.cloud import compute
from clickos_lab.cloud import sessions
from clickos_lab.cloud import vim
from clickos_lab.demo import tacker
from clickos_lab import log
from clickos_lab.vnf import csar

#: Operations of Tacker at once, and seconds for one of them.
_AT_ONCE, _PATIENCE_S = 2, 300


class Firewalls:
    """VNFs of a lab that is up; :meth:`sweep` removes them.

    :param templates: the folder of the catalog, of another release
    :ivar tacker: the tenant's :class:`tacker.Tacker`
    :ivar demo: the tenant's connection
    """

    def __init__(self, state, settings, templates=csar.TEMPLATES):
        self._state = state
        self._templates = templates
        self.demo = sessions.demo(settings)
        self.tacker = tacker.Tacker(self.demo)
        self._vnfs = []
        self._vim_id = vim.find(self.demo)
        compute.lift_quotas(sessions.admin(settings),
                            self.demo.current_project_id)

    def launch(self, count, number):
        """Make firewalls, and launch a number of them, some at once."""
        self.onboard()
        with log.step(f'{count} VNFs, {number} launched'), \
                concurrent.futures.ThreadPoolExecutor(_AT_ONCE) as pool:
            vnfs = list(pool.map(self.create, range(count)))
            self._vnfs = vnfs[:number]
            list(pool.map(self.instantiate, self._vnfs))

    def vnfs(self):
        """Return the VNFs that were launched."""
        return list(self._vnfs)

    def sweep(self):
        """Remove all VNFs and packages."""
        self.tacker.sweep()

    def places(self):
        """Return what the addresses of pages name."""
        return {'vnf': self._vnfs[0], 'package': self._package_id}

    def onboard(self):
        """Upload the package that all VNFs come from."""
        path = self._state.data / 'firewalls.csar'
        csar.build('firewall', path, '--fresh-id',
                   templates=self._templates)
        self._package_id = self.tacker.ask('POST', tacker.PACKAGES, json={
            'userDefinedData': {tacker.MARK: 'firewalls'}})['id']
        self.tacker.ask(
            'PUT', f'{tacker.PACKAGES}/{self._package_id}/package_content',
            data=path.read_bytes(),
            headers={'Content-Type': 'application/zip'})
        self._vnfd_id = self.tacker.wait_package(self._package_id)

    def create(self, name):
        """Make a VNF instance; return its id."""
        return self.tacker.ask('POST', tacker.INSTANCES, json={
            'vnfdId': self._vnfd_id,
            'vnfInstanceName': f'{tacker.MARK}-{name}'})['id']

    def instantiate(self, vnf_id, addresses=None):
        """Instantiate a VNF, and wait until it is.

        :param addresses: of its ports, by network
        """
        self.operate(vnf_id, 'instantiate', {
            'flavourId': 'simple',
            'vimConnectionInfo': [{'id': 'vim', 'vimType': 'openstack',
                                   'vimId': self._vim_id}],
            'extVirtualLinks': [
                self._link(name, (addresses or {}).get(name))
                for name in ('left', 'right')]})

    def operate(self, vnf_id, operation, body):
        """Start an operation, and wait for its end."""
        self.tacker.ask('POST', f'{tacker.INSTANCES}/{vnf_id}/{operation}',
                        json=body)
        self.tacker.wait_operation(vnf_id, operation.upper(), _PATIENCE_S)

    def _link(self, name, address):
        network = self.demo.network.find_network(name)
        data = {'layerProtocol': 'IP_OVER_ETHERNET'}
        if address:
            data['ipOverEthernet'] = {'ipAddresses': [{
                'type': 'IPV4', 'subnetId': network.subnet_ids[0],
                'fixedAddresses': [address]}]}
        return {'id': name, 'resourceId': network.id, 'extCps': [
            {'cpdId': name, 'cpConfig': [{'cpProtocolData': [data]}]}]}
