# SPDX-License-Identifier: Apache-2.0
"""Neutron with networking-sfc's rules, as openstacksdk shows it."""

import types
import uuid

from openstack import exceptions

PROJECT = 'the-project'
KINDS = ('flow_classifier', 'port_chain', 'port_pair', 'port_pair_group')


class Refused(exceptions.ConflictException):
    """A refusal with its reason."""

    def __init__(self, reason):
        super().__init__(reason)
        self.details = reason


class Network:
    """Keeps what is made, and refuses as networking-sfc does.

    :ivar made: the resources by kind and id
    :ivar requests: the kinds of all updates
    :ivar refused: a kind that cannot be made now
    """

    def __init__(self):
        self.made = {kind: {} for kind in KINDS}
        self.known_ports = {}
        self.requests = []
        self.refused = None
        for kind in KINDS:
            for verb in ('create', 'update', 'delete', 'get'):
                setattr(self, f'{verb}_sfc_{kind}',
                        getattr(self, f'_{verb}')(kind))
            setattr(self, f'sfc_{kind}s', self._list(kind))

    def add_port(self, key, server_id, mac, description='',
                 project_id=PROJECT):
        """Make a port of a server."""
        self.known_ports[key] = types.SimpleNamespace(
            id=key, name=f'VDU1-0-{key}', device_id=server_id,
            mac_address=mac, status='ACTIVE', description=description,
            network_id='net',
            fixed_ips=[{'ip_address': '10.0.0.9'}],
            is_port_security_enabled=False, project_id=project_id)

    def create_port(self, **values):
        """Make a port."""
        key = str(uuid.uuid4())
        self.known_ports[key] = types.SimpleNamespace(
            id=key, device_id='', mac_address=key, status='DOWN',
            project_id=PROJECT, **values)
        return self.known_ports[key]

    def delete_port(self, key):
        """Delete a port that is in no pair."""
        for pair in self.made['port_pair'].values():
            if key in (pair.ingress, pair.egress):
                raise Refused(f'port {key}: in use')
        del self.known_ports[key]

    def ports(self, **query):
        """List ports."""
        return [port for port in self.known_ports.values()
                if query.items() <= vars(port).items()]

    def get_port(self, key):
        """Show a port."""
        return self.known_ports[key]

    def get_network(self, key):
        """Show a network."""
        return types.SimpleNamespace(id=key, name=f'{key}-name')

    def find_port(self, name, ignore_missing, **query):
        """Show a port by its id, or by its name among those of a query."""
        found = [port for port in self.known_ports.values()
                 if port.id == name or port.name == name
                 and query.items() <= vars(port).items()]
        if len(found) != 1:
            raise exceptions.NotFoundException(name)
        return found[0]

    def get_project_id(self):
        """Return the project of the caller."""
        return PROJECT

    def _list(self, kind):
        return lambda: list(self.made[kind].values())

    def _get(self, kind):
        return self.made[kind].__getitem__

    def _create(self, kind):
        def create(**values):
            if kind == self.refused:
                raise Refused('port pair x: no')
            if kind == 'port_pair_group':
                values.setdefault('port_pair_group_parameters', None)
            new = types.SimpleNamespace(
                id=str(uuid.uuid4()), **{'project_id': PROJECT, **values})
            self._check(kind, new)
            self.made[kind][new.id] = new
            return new
        return create

    def _check(self, kind, new):
        if kind == 'port_pair':
            new.service_function_parameters['correlation']
        for other in self.made[kind].values():
            same = {
                'port_pair': lambda: (new.ingress, new.egress) == (
                    other.ingress, other.egress),
                'port_pair_group': lambda: set(new.port_pairs) & set(
                    other.port_pairs),
                'port_chain': lambda: new.port_pair_groups
                == other.port_pair_groups}
            if kind in same and same[kind]():
                raise Refused(f'{kind}: in use')

    def _update(self, kind):
        def update(key, **values):
            self.requests.append(kind)
            vars(self.made[kind][key]).update(values)
        return update

    def _delete(self, kind):
        users = {'flow_classifier': ('port_chain', 'flow_classifiers'),
                 'port_pair': ('port_pair_group', 'port_pairs'),
                 'port_pair_group': ('port_chain', 'port_pair_groups')}

        def delete(thing, ignore_missing=True):
            key = getattr(thing, 'id', thing)
            if kind in users:
                user, field = users[kind]
                for other in self.made[user].values():
                    if key in getattr(other, field):
                        raise Refused(f'{kind} {key}: in use')
            del self.made[kind][key]
        return delete
