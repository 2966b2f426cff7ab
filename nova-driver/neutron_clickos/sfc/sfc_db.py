# SPDX-License-Identifier: Apache-2.0
"""Port chains from networking-sfc's plugins, with the bindings of ports."""

import threading

from clickos_client import hop_tags
from clickos_client import neutron_rpc
from neutron.db.models import segment as segment_model
from neutron.db.models import tag as tag_models
from neutron.db import models_v2
from neutron.objects import agent as agent_objects
from neutron.plugins.ml2.drivers.l2pop import db as l2pop_db
from neutron.plugins.ml2 import models
from neutron_lib import constants
from neutron_lib import context as neutron_context
from neutron_lib.db import api as db_api
from neutron_lib.plugins import directory
from oslo_config import cfg
from oslo_log import log as logging
from oslo_serialization import jsonutils

from neutron_clickos import conf
from neutron_clickos import segments
from neutron_clickos.sfc import claims
from neutron_clickos.sfc import render

LOG = logging.getLogger(__name__)

conf.register_opts(cfg.CONF)

_SEGMENT = segment_model.NetworkSegment


class Reasons:
    """Why chains are in no switch; each process logs it when it changes."""

    def __init__(self):
        self._lock = threading.Lock()
        self._known = {}

    def note(self, chain_id, why, level=logging.INFO):
        """Note the reason of a chain, None for a chain that is ready."""
        with self._lock:
            before = self._known.pop(chain_id, None)
            if why is not None:
                self._known[chain_id] = why
        if why != before:
            LOG.log(level, 'Port chain %s: %s', chain_id, why or 'is ready')

    def keep(self, chain_ids):
        """Forget the chains that are deleted."""
        with self._lock:
            self._known = {key: self._known[key] for key in
                           self._known.keys() & chain_ids}


_reasons = Reasons()


def chains_of(host):
    """Return the answer of get_chains, docs/interfaces.md.

    :param host: the host that asks
    """
    sfc = directory.get_plugin('sfc')
    flows = directory.get_plugin('flow_classifier')
    if sfc is None or flows is None:
        return _answer()
    context = neutron_context.get_admin_context()
    pairs = _by_id(sfc.get_port_pairs(context))
    classifiers = _by_id(flows.get_flow_classifiers(context))
    groups = _by_id(sfc.get_port_pair_groups(context))
    known = ports(_named((*pairs.values(), *classifiers.values())))
    parts = (groups, pairs, classifiers, known)
    where = _segments_of({port.network for port in known.values()})
    paths, found, rights, places, reasons = tunnels(), [], {}, {}, {}
    chains = sfc.get_port_chains(context)
    for chain in chains:
        missing = render.missing(chain, *parts)
        if missing:
            # It changes while its parts are read, so it stays as it is.
            _reasons.note(chain['id'], f'changes now: {missing} is missing')
            rights[chain['id']] = places[chain['id']] = None
            continue
        try:
            arguments, may_send, why = _rendered(chain, parts, paths)
        except (ValueError, KeyError) as e:
            # No chain stops those of others.
            _reasons.note(chain['id'], str(e), logging.WARNING)
            continue
        _reasons.note(chain['id'], why)
        if why is not None:
            reasons[chain['id']] = why
        if may_send is not None:
            rights[chain['id']] = may_send
            places[chain['id']] = sorted(
                place for network in render.networks(chain, *parts[:2], known)
                for place in where.get(network, ()))
        found += [arguments[host]] if host in arguments else []
    _reasons.keep({chain['id'] for chain in chains})
    return _answer(found, rights, places, reasons)


def _answer(chains=(), rights=(), places=(), reasons=()):
    return {'chains': list(chains), 'kept': list(rights),
            'rights': dict(rights), 'places': dict(places),
            'reasons': dict(reasons)}


def _rendered(chain, parts, paths):
    """Return a chain for each host; else its rights, and why it has no host.
    """
    may_send = render.rights(chain, *parts)
    try:
        return render.chain_sets(chain, *parts, paths), None, None
    except render.NotReady as e:
        return {}, may_send, f'not ready: {e}'
    except render.Empty as e:
        return {}, None, f'not ready: {e}'


def hosts():
    """List the hosts that have ports of port pairs or classifiers."""
    context = neutron_context.get_admin_context()
    pairs = directory.get_plugin('sfc').get_port_pairs(context)
    flows = directory.get_plugin('flow_classifier').get_flow_classifiers(
        context)
    found = ports(_named((*pairs, *flows))).values()
    return sorted({port.place.host for port in found if port.place})


def tunnels():
    """Return the address that each host's agent reported, by host."""
    context = neutron_context.get_admin_context()
    found = {agent.host: l2pop_db.get_agent_ip(agent)
             for agent in agent_objects.Agent.get_objects(
                 context, agent_type=neutron_rpc.AGENT_TYPE)}
    return {host: address for host, address in found.items() if address}


def ports(port_ids):
    """Return the render.Port of each of these ports that exists."""
    context = neutron_context.get_admin_context()
    port, network = models_v2.Port, models_v2.Network
    with db_api.CONTEXT_READER.using(context) as session:
        rows = session.query(port.id, port.project_id, port.network_id,
                             network.project_id.label('network_project')).join(
            network, network.id == port.network_id).filter(
                port.id.in_(sorted(port_ids))).all()
        places = _places(session, port_ids)
        rights = claims.of_ports(session, port_ids)
    return {row.id: render.Port(
        row.project_id, row.network_project, places.get(row.id),
        rights[row.id].claimable, rights[row.id].usable, row.network_id)
        for row in rows}


def _segments_of(network_ids):
    """Return [[switch, segment]] of each network that hosts carry."""
    context, table = neutron_context.get_admin_context(), _SEGMENT
    with db_api.CONTEXT_READER.using(context) as session:
        rows = session.query(
            table.network_id, table.network_type, table.physical_network,
            table.segmentation_id).filter(
                table.network_id.in_(sorted(network_ids))).all()
    switches, found = conf.switches(cfg.CONF), {}
    for row in rows:
        switch = segments.switch(row.network_type, row.physical_network,
                                 switches, cfg.CONF.ml2_vale.tunnel_switch)
        if switch:
            found.setdefault(row.network_id, []).append(
                [switch, segments.number(row.network_type,
                                         row.segmentation_id,
                                         row.network_id)])
    return found


def _places(session, port_ids):
    """Return the render.Place of each port that a switch has."""
    binding = models.PortBinding
    rows = session.query(
        binding.port_id, binding.host, binding.vif_details,
        models_v2.Port.mac_address).join(
            models_v2.Port, models_v2.Port.id == binding.port_id).filter(
            binding.port_id.in_(sorted(port_ids)),
            binding.vif_type == 'vale',
            binding.status == constants.ACTIVE).all()
    tags = _tags(session, port_ids)
    return {row.port_id: _place(row, tags.get(row.port_id, ()))
            for row in rows}


def _tags(session, port_ids):
    """Return {port: tags about its hop} of ports that have some."""
    port, tag = models_v2.Port, tag_models.Tag
    rows = session.query(port.id, tag.tag).join(
        tag, tag.standard_attr_id == port.standard_attr_id).filter(
            port.id.in_(sorted(port_ids)), tag.tag.like('clickos:%'))
    found = {}
    for key, text in rows:
        found.setdefault(key, []).append(text)
    return found


def _place(row, tags):
    details = jsonutils.loads(row.vif_details)
    return render.Place(row.host, details['vale_switch'],
                        details['vale_segment'], details['vale_port'],
                        details['vale_port_security'], str(row.mac_address),
                        [each['ip'] for each in details['vale_allowed']],
                        hop_tags.transparent(tags), hop_tags.copies(tags))


def _named(parts):
    return {key for part in parts for key in render.named_ports(part)}


def _by_id(rows):
    return {row['id']: row for row in rows}
