# SPDX-License-Identifier: Apache-2.0
"""A port chain of one hop between two machines of a network."""

import base64

from clickos_lab.cloud import compute
from clickos_lab.config import hosts

NAME = 'upgrade-chain'
#: Copies each frame from one of its ports to the other.
_WIRE = '''
FromDevice(0) -> there :: Counter -> Queue -> ToDevice(1);
FromDevice(1) -> back :: Counter -> Queue -> ToDevice(0);
'''
COUNTER = 'there.count'
_PATIENCE_S = 120
#: Kinds of resources of networking-sfc, in the order of their removal.
_KINDS = ('port_chain', 'port_pair_group', 'port_pair', 'flow_classifier')


class Hop:
    """A chain whose hop is a server of the tenant, and not of a VNF.

    :param demo: the tenant's connection
    """

    def __init__(self, demo):
        self._demo, self._network = demo, demo.network
        self.chain_id = self.server_id = None

    def make(self, client, server):
        """Steer the client's packets to the server through the hop.

        :param client, server: :class:`demo.machines.Binding`
        """
        network = self._network.find_network('left')
        ports = [self._network.create_port(
            network_id=network.id, name=NAME, is_port_security_enabled=False)
            for _ in range(2)]
        self.server_id = self._demo.compute.create_server(
            name=NAME, networks=[{'port': port.id} for port in ports],
            image_id=self._image_id(),
            flavor_id=self._demo.compute.find_flavor(
                compute.FLAVOR['name']).id,
            user_data=base64.b64encode(_WIRE.encode()).decode()).id
        compute.wait_active(self._demo, NAME, 1, _PATIENCE_S)
        pair = self._create('port_pair', ingress=ports[0].id,
                            egress=ports[1].id)
        group = self._create('port_pair_group', port_pairs=[pair])
        flow = self._create('flow_classifier', ethertype='IPv4',
                            logical_source_port=client.id,
                            source_ip_prefix=f'{client.ip}/32',
                            destination_ip_prefix=f'{server.ip}/32')
        self.chain_id = self._create(
            'port_chain', port_pair_groups=[group], flow_classifiers=[flow])

    def _image_id(self):
        return self._demo.image.find_image(hosts.PROCESS.image).id

    def rebuild(self):
        """Let the hop run the image that now has the name."""
        self._demo.compute.rebuild_server(self.server_id,
                                          image=self._image_id())
        compute.wait_active(self._demo, NAME, 1, _PATIENCE_S)

    def _create(self, kind, **values):
        make = getattr(self._network, f'create_sfc_{kind}')
        return make(name=NAME, **values).id

    def remove(self):
        """Remove the chain, its hop and ports; may be called twice."""
        for kind in _KINDS:
            found = getattr(self._network, f'sfc_{kind}s')(name=NAME)
            for each in found:
                getattr(self._network, f'delete_sfc_{kind}')(each)
        compute.delete_servers(self._demo, NAME, _PATIENCE_S)
        for port in self._network.ports(name=NAME):
            self._network.delete_port(port)
