# SPDX-License-Identifier: Apache-2.0
"""The client of networking-sfc, a part of Neutron's API."""

from clickos_tempest_plugin.services import base


class SfcClient(base.Client):
    """Port pairs, groups, flow classifiers and chains.

    :param kind: of every method: 'port_pair', 'port_pair_group',
        'flow_classifier' or 'port_chain'
    """

    def create(self, kind, **values):
        """Make a resource and return it."""
        return self.call('POST', f'v2.0/sfc/{kind}s', 201,
                         {kind: values})[1][kind]

    def show(self, kind, resource_id):
        """Show a resource."""
        return self.call('GET', f'v2.0/sfc/{kind}s/{resource_id}',
                         200)[1][kind]

    def update(self, kind, resource_id, **values):
        """Change a resource and return it."""
        return self.call('PUT', f'v2.0/sfc/{kind}s/{resource_id}', 200,
                         {kind: values})[1][kind]

    def delete(self, kind, resource_id):
        """Delete a resource."""
        self.call('DELETE', f'v2.0/sfc/{kind}s/{resource_id}', 204)
