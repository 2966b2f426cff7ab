# SPDX-License-Identifier: Apache-2.0
"""The addresses that a hop may put in place of a packet's source.

A group of port pairs claims such addresses with ``source_ip_prefix``. The
switch sends packets to them into the hop, so a claim could take packets
from others. It counts only within what Neutron lets the hop's egress ports
use (SECURITY.md, "Decisions about claims").
"""

import collections
import ipaddress

from neutron.db.models import allowed_address_pair
from neutron.db.models import external_net
from neutron.db.models import l3
from neutron.db import models_v2
from neutron.db.port_security import models as security_models
from neutron_lib import constants
from oslo_log import log as logging

LOG = logging.getLogger(__name__)

#: Any address, by Neutron's name of the IP version.
ANY = {constants.IPv4: '0.0.0.0/0', constants.IPv6: '::/0'}
#: The address translation that a group of port pairs declares.
_MAPPING = 'ppg_n_tuple_mapping'

#: What decides about a port: whether its network is its project's, whether
#: this network is public, whether port security is on, its fixed addresses,
#: its allowed address pairs, the subnets of its fixed addresses, and the
#: addresses of its project on the network. Addresses are CIDRs.
Facts = collections.namedtuple(
    'Facts', 'is_own is_public is_secure fixed pairs subnets owned')
#: The networks that a port may use, and those that its hop may claim.
Rights = collections.namedtuple('Rights', 'usable claimable')


def of_group(group):
    """Return the networks that a group of port pairs claims.

    :raises ValueError: for a text that Neutron takes for a network, such as
        an IPv6 prefix with a mask, and the switch does not
    """
    parameters = group.get('port_pair_group_parameters') or {}
    mapping = parameters.get(_MAPPING) or {}
    source = (mapping.get('egress_n_tuple') or {}).get('source_ip_prefix')
    return [_cidr(source)] if source else []


def excess(group, pairs, ports):
    """Return (network, port id) of a claim that does not count, or None.

    :param group: a group of port pairs
    :param pairs: its port pairs
    :param ports: render.Port by id
    """
    for network in of_group(group):
        for pair in pairs:
            port = ports.get(pair['egress'])
            if port is None or not _lies_in_one(network, port.claimable):
                return network, pair['egress']
    return None


def counting(group, pairs, ports):
    """Return the networks of a group's claim if it counts, else none."""
    found = excess(group, pairs, ports)
    if found:
        LOG.warning('Port pair group %(group)s: source_ip_prefix %(network)s'
                    ' does not count, port %(port)s may not use it',
                    {'group': group['id'], 'network': found[0],
                     'port': found[1]})
        return []
    return of_group(group)


def claimable(facts):
    """Return the networks in which a port's hop may claim addresses.

    :param facts: Facts of the port
    """
    if facts.is_public:
        return facts.fixed + [address for address in facts.owned
                              if _lies_in_one(address, _usable(facts))]
    if facts.is_own:
        return _usable(facts)
    # The network's owner gives narrow pairs; wide ones are no one's gift.
    return facts.fixed + [pair for pair in facts.pairs
                          if _lies_in_one(pair, facts.subnets)]


def _usable(facts):
    """Return the networks from which the switch lets a port send."""
    return facts.fixed + facts.pairs if facts.is_secure \
        else list(ANY.values())


def _lies_in_one(network, others):
    """Return whether a network is a part of one of the others."""
    network = ipaddress.ip_network(network)
    others = map(ipaddress.ip_network, others)
    return any(network.version == other.version and network.subnet_of(other)
               for other in others)


def of_ports(session, port_ids):
    """Return the Rights of ports, by id.

    :param session: of Neutron's database
    :param port_ids: ids of ports; those that exist are answered
    """
    port, network = models_v2.Port, models_v2.Network
    public = external_net.ExternalNetwork
    security = security_models.PortSecurityBinding
    rows = session.query(
        port.id, port.project_id, port.network_id,
        network.project_id.label('network_project'),
        public.network_id.label('public'), security.port_security_enabled,
    ).join(network, network.id == port.network_id).outerjoin(
        public, public.network_id == port.network_id).outerjoin(
            security, security.port_id == port.id).filter(
                port.id.in_(sorted(port_ids))).all()
    addresses = _addresses(session, port_ids)
    pairs = _pairs(session, port_ids)
    found = {}
    for row in rows:
        mine = addresses.get(row.id, [])
        facts = Facts(
            is_own=bool(row.project_id)
            and row.network_project == row.project_id,
            is_public=row.public is not None,
            is_secure=row.port_security_enabled is not False,
            fixed=[_cidr(address) for address, subnet in mine],
            pairs=[_cidr(pair) for pair in pairs.get(row.id, ())],
            subnets=[_cidr(subnet) for address, subnet in mine],
            owned=_owned(session, row) if row.public else [])
        found[row.id] = Rights(_usable(facts), claimable(facts))
    return found


def _cidr(address):
    return str(ipaddress.ip_network(str(address), strict=False))


def _addresses(session, port_ids):
    """Return [(address, CIDR of its subnet)] by port id."""
    allocation, subnet = models_v2.IPAllocation, models_v2.Subnet
    rows = session.query(
        allocation.port_id, allocation.ip_address, subnet.cidr).join(
            subnet, subnet.id == allocation.subnet_id).filter(
                allocation.port_id.in_(sorted(port_ids))).all()
    found = collections.defaultdict(list)
    for row in rows:
        found[row.port_id].append((row.ip_address, row.cidr))
    return found


def _pairs(session, port_ids):
    """Return the networks of allowed address pairs by port id."""
    pair = allowed_address_pair.AllowedAddressPair
    rows = session.query(pair.port_id, pair.ip_address).filter(
        pair.port_id.in_(sorted(port_ids))).all()
    found = collections.defaultdict(list)
    for row in rows:
        found[row.port_id].append(row.ip_address)
    return found


def _owned(session, port):
    """Return the addresses that a port's project has on its network.

    They are those of its floating IPs, its routers and its ports.
    """
    if not port.project_id:
        return []
    floating, router = l3.FloatingIP, l3.Router
    allocation, other = models_v2.IPAllocation, models_v2.Port
    found = session.query(floating.floating_ip_address).filter(
        floating.project_id == port.project_id,
        floating.floating_network_id == port.network_id).all()
    gateways = session.query(router.gw_port_id).filter(
        router.project_id == port.project_id,
        router.gw_port_id.isnot(None))
    ports = session.query(other.id).filter(
        other.project_id == port.project_id)
    for owners in (gateways, ports):
        found += session.query(allocation.ip_address).filter(
            allocation.network_id == port.network_id,
            allocation.port_id.in_(owners)).all()
    return [_cidr(address) for address, in found]
