# SPDX-License-Identifier: Apache-2.0
"""Chains of VNFs: networking-sfc's API with the user's token."""

import contextlib
import dataclasses

from clickos_client import chains
from keystoneauth1 import exceptions as ks_exc
from openstack import connection
from openstack import exceptions as sdk_exc
from openstack.network.v2 import _proxy
from openstack_dashboard.api import base
from openstack_dashboard.api import nova

from clickos_dashboard.api import sessions

#: What a flow classifier selects packets by.
_SELECTS = ('ethertype', 'protocol', 'source_ip_prefix',
            'destination_ip_prefix', 'source_port_range_min',
            'source_port_range_max', 'destination_port_range_min',
            'destination_port_range_max', 'logical_source_port',
            'logical_destination_port', 'l7_parameters')


@contextlib.contextmanager
def _refusals():
    """Raise Neutron's refusals as ChainError; Horizon has rules of its own.
    """
    try:
        yield
    except sdk_exc.HttpException as exc:
        if exc.status_code == 401:
            raise ks_exc.Unauthorized(str(exc))
        raise chains.ChainError(exc.details or f'HTTP {exc.status_code}')
    except sdk_exc.SDKException as exc:
        raise chains.ChainError(str(exc))


@dataclasses.dataclass(frozen=True)
class Hop:
    """A hop: the id of its group, its name, its place among the others.

    :ivar ports: ids of the ports of its pairs, if they were asked for
    :ivar vnf_id: of the VNF that it is, if that is known
    """

    id: str
    name: str
    first: bool
    last: bool
    ports: tuple = ()
    vnf_id: str = ''


@dataclasses.dataclass(frozen=True)
class Rule:
    """A flow classifier: a text says which packets it selects.

    :ivar values: as networking-sfc has them
    """

    id: str
    text: str
    values: dict = dataclasses.field(hash=False)


@dataclasses.dataclass(frozen=True)
class Chain:
    """A chain and its Hops in order.

    :ivar rules: Rules, the packets that it steers, if they were asked for
    """

    id: str
    name: str
    symmetric: bool
    hops: tuple
    rules: tuple = ()

    @property
    def path(self):
        """The names of the hops."""
        return ' → '.join(hop.name for hop in self.hops)


@_refusals()
def all_chains(request):
    """List the chains of the project, by two requests."""
    network = _network(request)
    return _shown(network, network.sfc_port_chains())


@_refusals()
def chains_with_ports(request):
    """List the chains of the project, whose hops have ports."""
    network = _network(request)
    project_id = network.get_project_id()
    return _shown(network, [
        chain for chain in network.sfc_port_chains()
        if chain.project_id in (None, project_id)], has_ports=True)


@_refusals()
def chain(request, chain_id):
    """Return a Chain."""
    network = _network(request)
    return _shown(network, [chains.find(network, str(chain_id))])[0]


@_refusals()
def whole_chain(request, chain_id):
    """Return a Chain with its rules, whose hops have ports."""
    network = _network(request)
    found = chains.find(network, str(chain_id))
    wanted = found.flow_classifiers or ()
    flows = {flow.id: flow for flow in
             (network.sfc_flow_classifiers() if wanted else ())}
    return dataclasses.replace(
        _shown(network, [found], has_ports=True)[0], rules=tuple(
            _rule(flows[key]) for key in wanted if key in flows))


def _rule(flow):
    return Rule(flow.id, chains.classifier(flow), {
        key: value for key in _SELECTS if (value := getattr(flow, key, None))})


@_refusals()
def change_rule(request, chain_id, rule_id, flow):
    """Let a live chain steer other packets, by one request.

    :param rule_id: of the flow classifier that goes
    :param flow: values of the one that comes instead
    """
    network = _network(request)
    chains.change(network, chains.find(network, str(chain_id)),
                  classifiers=[flow], instead=[str(rule_id)])


@_refusals()
def network_name(request, network_id):
    """Return the name of a network, or its id."""
    return _network(request).get_network(network_id).name or network_id


def counters(request, chain_id):
    """Return packets, bytes and drops of a chain and of its hops."""
    return sessions.clickos(request).chain(str(chain_id))


@_refusals()
def create(request, name, network_id, vnfs, flow, symmetric):
    """Make a chain; return its id.

    :param network_id: the network whose packets the chain steers
    :param vnfs: list of vnf.Vnf, the hops in order
    :param flow: values of a flow classifier
    """
    network = _network(request)
    wanted = [(vnf.name, _guests(request, network, vnf, network_id))
              for vnf in vnfs]
    return chains.create(network, name, wanted, [flow], symmetric).id


@_refusals()
def insert(request, chain_id, vnf, place):
    """Insert a VNF as a hop of a live chain.

    :param place: how many hops precede it
    """
    network = _network(request)
    found = chains.find(network, str(chain_id))
    groups = list(found.port_pair_groups)
    with contextlib.ExitStack() as undo:
        groups.insert(place, chains.make_hop(
            network, vnf.name, _guests(
                request, network, vnf, _network_of(network, found)), undo))
        chains.replace(network, found, groups)
        undo.pop_all()


@_refusals()
def remove(request, chain_id, group_id):
    """Remove a hop of a live chain."""
    network = _network(request)
    found = chains.find(network, str(chain_id))
    chains.replace(network, found, [group for group in found.port_pair_groups
                                    if group != group_id])


@_refusals()
def move(request, chain_id, group_id, step):
    """Move a hop of a live chain by some places.

    :param step: negative towards the beginning
    """
    network = _network(request)
    found = chains.find(network, str(chain_id))
    groups = list(found.port_pair_groups)
    place = groups.index(group_id)
    groups.insert(max(0, place + step), groups.pop(place))
    chains.replace(network, found, groups)


@_refusals()
def reorder(request, chain_id, groups):
    """Give the hops of a live chain another order, by one request.

    :param groups: the ids of all hops in the new order
    """
    network = _network(request)
    found = chains.find(network, str(chain_id))
    if sorted(groups) != sorted(found.port_pair_groups):
        raise chains.ChainError('the chain has other hops by now; load the'
                                ' page again')
    chains.replace(network, found, groups)


@_refusals()
def delete(request, chain_id):
    """Delete a chain and what was made for it."""
    network = _network(request)
    chains.delete(network, chains.find(network, str(chain_id)))


def _network(request):
    """Return openstacksdk's proxy of Neutron.

    A connection's own proxy would ask Neutron for its versions first.
    """
    url = base.url_for(request, 'network').rstrip('/')
    if not url.endswith('/v2.0'):
        url += '/v2.0'
    owner = connection.Connection(
        session=sessions.session(request, 'Neutron'))
    network = _proxy.Proxy(owner.session, service_type='network',
                           endpoint_override=url)
    # Each request needs it, and the session refers to it weakly.
    network.owner = owner
    return network


def _shown(network, found, has_ports=False):
    groups = {group.id: group for group in network.sfc_port_pair_groups()}
    names = {key: group.name or key for key, group in groups.items()}
    ends = {pair.id: (pair.ingress, pair.egress)
            for pair in network.sfc_port_pairs()} if has_ports else {}
    ports = {key: tuple(dict.fromkeys(port for pair in group.port_pairs or ()
                                      for port in ends.get(pair, ())))
             for key, group in groups.items()}
    return [_chain(each, names, ports) for each in found]


def _chain(found, names, ports):
    groups = found.port_pair_groups
    hops = tuple(Hop(group, names.get(group, group), place == 0,
                     place == len(groups) - 1, ports.get(group, ()))
                 for place, group in enumerate(groups))
    symmetric = (found.chain_parameters or {}).get('symmetric')
    return Chain(found.id, found.name or found.id, bool(symmetric), hops)


def _network_of(network, found):
    """Return the id of the network whose packets a chain steers."""
    hop = chains.hops(network, found)[0]
    return network.get_port(hop.pairs[0].ingress).network_id


def _guests(request, network, vnf, network_id):
    """List the guests of a VNF by the mark on their ports of a network."""
    mark = chains.VNF_MARK + vnf.id
    servers = {}
    for port in chains.ports(network, mark, network_id=network_id):
        if port.device_id:
            servers.setdefault(port.device_id, []).append(port)
    if not servers:
        raise chains.ChainError(f'VNF {vnf.name}: has no port on the'
                                ' network; launch it there')
    return [chains.guest(vnf.name, ports, nova.server_get(
        request, server).addresses) for server, ports in servers.items()]
