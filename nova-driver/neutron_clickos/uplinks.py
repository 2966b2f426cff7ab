# SPDX-License-Identifier: Apache-2.0
"""The networks of a host's ports, and the other hosts of each.

The peers of a VXLAN network are the hosts of its active ports that have
reported a ``tunneling_ip``. Neutron's driver l2population tells other agents
the same hosts.
"""

import sqlalchemy

from neutron.db.models import agent as agent_model
from neutron.db.models import segment as segment_model
from neutron.db import models_v2
from neutron.objects import agent as agent_objects
from neutron.plugins.ml2.drivers.l2pop import db as l2pop_db
from neutron.plugins.ml2 import models
from neutron_lib import constants
from neutron_lib import context as neutron_context
from neutron_lib.db import api as db_api
from oslo_serialization import jsonutils

from neutron_clickos import segments

_SEGMENT, _LEVEL = segment_model.NetworkSegment, models.PortBindingLevel
_BINDING = models.PortBinding


def of_host(host):
    """List the networks of a host's bound ports.

    :param host: the agent's host.
    :returns: list of {'switch', 'segment', 'network_type',
        'physical_network', 'segmentation_id', 'peers'}, ordered
    """
    context = neutron_context.get_admin_context()
    return [{'switch': switch, 'segment': number,
             'network_type': segment.network_type,
             'physical_network': segment.physical_network,
             'segmentation_id': segment.segmentation_id,
             'peers': _peers(context, segment, host)}
            for (switch, number), segment in sorted(
                _segments(context, host).items())]


def hosts_of(network_id):
    """:returns: the hosts that have a bound port of a network, ordered"""
    context = neutron_context.get_admin_context()
    with db_api.CONTEXT_READER.using(context) as session:
        rows = session.query(_BINDING.host).join(
            models_v2.Port, models_v2.Port.id == _BINDING.port_id).filter(
                models_v2.Port.network_id == network_id,
                _BINDING.vif_type == 'vale').distinct().all()
    return sorted(row.host for row in rows)


def devices_of(host):
    """List the ports on a host that belong to Neutron's own agents.

    :param host: of the bindings
    :returns: list of {'port', 'switch', 'segment', 'mac'}, ordered
    """
    context, port = neutron_context.get_admin_context(), models_v2.Port
    with db_api.CONTEXT_READER.using(context) as session:
        rows = session.query(
            port.id, port.mac_address, _BINDING.vif_details).join(
                _BINDING, _BINDING.port_id == port.id).filter(
                    port.device_owner.like(
                        constants.DEVICE_OWNER_NETWORK_PREFIX + '%'),
                    port.admin_state_up.is_(True),
                    _BINDING.host == host, _BINDING.vif_type == 'vale',
                    _BINDING.status == constants.ACTIVE).order_by(
                        port.id).all()
    found = []
    for row in rows:
        details = jsonutils.loads(row.vif_details)
        found.append({'port': row.id, 'switch': details['vale_switch'],
                      'segment': details['vale_segment'],
                      'mac': str(row.mac_address)})
    return found


def host_of(address):
    """:returns: the host whose agent reported a tunnel's address, or None"""
    context = neutron_context.get_admin_context()
    for agent in agent_objects.Agent.get_objects(context):
        if l2pop_db.get_agent_ip(agent) == address:
            return agent.host
    return None


def is_alone(network_id):
    """:returns: whether no other local network has this one's number"""
    context = neutron_context.get_admin_context()
    first = network_id[:segments.LOCAL_DIGITS]
    with db_api.CONTEXT_READER.using(context) as session:
        return not session.query(_SEGMENT.id).filter(
            _SEGMENT.network_type == constants.TYPE_LOCAL,
            _SEGMENT.network_id.like(first + '%'),
            _SEGMENT.network_id != network_id).first()


def _segments(context, host):
    """Return a network's segment by the switch and the number there.

    A guest that moves here finds its networks led here: its bindings are
    inactive until it has arrived.
    """
    with db_api.CONTEXT_READER.using(context) as session:
        rows = session.query(_SEGMENT, _BINDING.vif_details).join(
            _LEVEL, _LEVEL.segment_id == _SEGMENT.id).join(
                _BINDING, sqlalchemy.and_(
                    _BINDING.port_id == _LEVEL.port_id,
                    _BINDING.host == _LEVEL.host)).filter(
                        _BINDING.host == host,
                        _BINDING.vif_type == 'vale').all()
        found = {}
        for segment, details in rows:
            details = jsonutils.loads(details)
            place = details['vale_switch'], details['vale_segment']
            found[place] = segment
        session.expunge_all()
    return found


def _peers(context, segment, host):
    if segment.network_type != constants.TYPE_VXLAN:
        return []
    network = segment.network_id
    agents = _agents(context, network) + l2pop_db.get_ha_agents(
        context, network_id=network)
    found = {l2pop_db.get_agent_ip(agent) for agent in agents
             if agent.host != host}
    return sorted(found - {None})


def _agents(context, network_id):
    """:returns: the agents of the hosts that have active ports"""
    port, agent = models_v2.Port, agent_model.Agent
    with db_api.CONTEXT_READER.using(context) as session:
        return [each for binding in (_BINDING, models.DistributedPortBinding)
                for each in session.query(agent).join(
                    binding, binding.host == agent.host).join(
                        port, port.id == binding.port_id).filter(
                            port.network_id == network_id,
                            port.status == constants.PORT_STATUS_ACTIVE,
                            binding.vif_type != 'unbound').distinct().all()]
