# SPDX-License-Identifier: Apache-2.0
"""ML2 mechanism driver ``vale``: binds ports to the switch of a ClickOS host.

The Nova driver plugs a port when it starts the guest, with what stands in
binding:vif_details. The host's clickos-agent unplugs it, and sets its link,
when Neutron tells that the port has changed (docs/adr/0021).
"""

import hashlib

from clickos_client import limits
from clickos_client import neutron_rpc
from clickos_client import port_roles
from neutron.objects import ports as port_objects
from neutron.plugins.ml2.drivers import mech_agent
from neutron_lib.api.definitions import port_security
from neutron_lib.api.definitions import portbindings
from neutron_lib.callbacks import events
from neutron_lib.callbacks import registry
from neutron_lib.callbacks import resources
from neutron_lib import constants
from neutron_lib import context as neutron_context
from neutron_lib import exceptions
from neutron_lib.plugins import directory
from neutron_lib.plugins.ml2 import api
from neutron_lib.services.qos.constants import QOS_POLICY_ID as QOS_POLICY
from oslo_config import cfg
from oslo_log import log as logging
from oslo_serialization import jsonutils

from neutron_clickos import addresses
from neutron_clickos import conf
from neutron_clickos import filters
from neutron_clickos import port_rpc
from neutron_clickos import qos
from neutron_clickos import segments
from neutron_clickos import servers
from neutron_clickos import uplinks

LOG = logging.getLogger(__name__)

VIF_TYPE = 'vale'
#: Neutron's column for binding:vif_details takes 4095; it adds a little.
MAX_DETAILS = 4000
#: A change of one of these changes what the switch has to do.
_PLUGGED_BY = ('device_id', 'admin_state_up', portbindings.HOST_ID,
               portbindings.VIF_TYPE)
#: A change of one of these may change the hosts of a network.
_REACHED_BY = (portbindings.HOST_ID, portbindings.VIF_TYPE, 'status')
#: A change of one of these may change rules of groups, or the port's limits.
_POLICY_BY = ('security_groups', 'fixed_ips', 'allowed_address_pairs',
              port_security.PORTSECURITY, portbindings.PROFILE, QOS_POLICY)


class MacFixed(exceptions.Conflict):
    """An update that a running guest would not follow."""

    message = ("Port %(port)s belongs to a ClickOS guest, which has its MAC "
               "address from its start. The address can be changed only "
               "while the port belongs to no server.")


class TooManyAddresses(exceptions.Conflict):
    """An update that has no room in the port's binding."""

    message = ("Port %(port)s: its addresses and allowed address pairs take "
               "%(size)d bytes, Neutron has room for %(max)d.")


class PortPlugged(exceptions.Conflict):
    """An update that would hide whose port the switch has."""

    message = ("Port %(port)s is bound for ClickOS server %(server)s: "
               "device_id and device_owner can be changed only by a request "
               "that also clears or changes binding:host_id, as Nova's "
               "does. Delete the server, or set admin_state_up to false.")


class ValeMechanismDriver(mech_agent.AgentMechanismDriverBase):
    """Binds normal ports of VLAN, flat, VXLAN and local networks.

    The port's host must have a live clickos-agent. Ports of other hosts are
    left to other drivers.
    """

    def __init__(self):
        super().__init__(neutron_rpc.AGENT_TYPE, [portbindings.VNIC_NORMAL])

    def initialize(self):
        """Read the configuration.

        :raises: ValueError for a bad ``switch_mappings``; Neutron ends.
        """
        conf.register_opts(cfg.CONF)
        self._switches = conf.switches(cfg.CONF)
        self._notifier = port_rpc.AgentNotifier()
        self._gone = servers.Gone()
        # ML2 asks no mechanism driver about a port that becomes a
        # distributed router's, so these come from the registry.
        for event, callback in ((events.BEFORE_UPDATE, self.look_for_server),
                                (events.PRECOMMIT_UPDATE, self.check_owner),
                                (events.AFTER_UPDATE, self.port_updated),
                                (events.AFTER_DELETE, self.port_deleted)):
            registry.subscribe(callback, resources.PORT, event)
        for event in (events.AFTER_CREATE, events.AFTER_DELETE):
            registry.subscribe(self.rules_changed,
                               resources.SECURITY_GROUP_RULE, event)
        registry.subscribe(self.check_rule, resources.SECURITY_GROUP_RULE,
                           events.BEFORE_CREATE)
        registry.subscribe(self.rules_changed, resources.ADDRESS_GROUP,
                           events.AFTER_UPDATE)
        registry.subscribe(self.members_changed, resources.PORT,
                           events.AFTER_CREATE)
        registry.subscribe(self.network_updated, resources.NETWORK,
                           events.AFTER_UPDATE)
        self._qos = qos.QosDriver(VIF_TYPE, self._notify_policies)
        LOG.info('Mechanism driver vale, switches: %s', self._switches)

    @property
    def connectivity(self):
        """:returns: layer 2: ports without an address are bound, too"""
        return portbindings.CONNECTIVITY_L2

    def try_to_bind_segment_for_agent(self, context, segment, agent):
        """Bind to a segment that a switch of the agent's host carries."""
        switch = self._switch(segment, agent)
        if not switch or not _mtu_fits(context):
            return False
        network = context.network.current['id']
        if segment[api.NETWORK_TYPE] == constants.TYPE_LOCAL \
                and not uplinks.is_alone(network):
            LOG.warning('Port %(port)s is not bound: local network '
                        '%(network)s has the number of another one at a '
                        'switch; make another network',
                        {'port': context.current['id'], 'network': network})
            return False
        number = segments.number(segment[api.NETWORK_TYPE],
                                 segment[api.SEGMENTATION_ID], network)
        return self._bind(context, segment,
                          _vif_details(context.current, switch, number))

    def _switch(self, segment, agent):
        """:returns: the switch that carries a segment, None if none does"""
        kind = segment[api.NETWORK_TYPE]
        if kind == constants.TYPE_VXLAN and \
                not agent['configurations'].get('tunneling_ip'):
            return None
        return segments.switch(kind, segment[api.PHYSICAL_NETWORK],
                               self._switches,
                               cfg.CONF.ml2_vale.tunnel_switch)

    def _bind(self, context, segment, details):
        size = len(jsonutils.dumps(details))
        if size > MAX_DETAILS:
            LOG.warning('Port %(port)s is not bound: its addresses take '
                        '%(size)d bytes, Neutron room is for %(max)d',
                        {'port': context.current['id'], 'size': size,
                         'max': MAX_DETAILS})
            return False
        context.set_binding(segment[api.ID], VIF_TYPE, details)
        return True

    def start_rpc_listeners(self):
        """:returns: the servers that answer the agents"""
        server = port_rpc.make_server(cfg.CONF.host)
        server.start()
        return [server]

    def look_for_server(self, resource, event, trigger, payload):
        """Ask Nova about the server of a port that a request sets free.

        The transaction of the update, which comes next, cannot wait for it.
        """
        before, request = payload.states[0], payload.states[1]
        if _is_plugged(before) and not _moves(before, request) \
                and _sets_free(before, _changed_owner(before, request)):
            self._gone.look(before['device_id'], payload.context.project_id)

    def check_owner(self, resource, event, trigger, payload):
        """Refuse to take a plugged port from its server.

        Without its owner a port can be deleted, also together with its
        network, while the guest still sends on it. The owner may go if Nova
        knows no such server: Nova gives up a port when Neutron is away as
        its server ends, and only an admin could delete the port then.

        :raises: PortPlugged, an HTTP 409
        """
        before, after = payload.states[0], payload.desired_state
        if _is_plugged(before) and _owner(before) != _owner(after) \
                and not _moves(before, payload.request_body) \
                and not (_sets_free(before, _owner(after))
                         and before['device_id'] in self._gone):
            raise PortPlugged(port=before['id'], server=before['device_id'])

    def port_updated(self, resource, event, trigger, payload):
        """Tell the host that had the port."""
        before, after = payload.states[0], payload.latest_state
        if any(before.get(key) != after.get(key) for key in _PLUGGED_BY):
            self._notify(before)
        if any(before.get(key) != after.get(key) for key in _REACHED_BY):
            self._notify_networks(before, after)
        if any(before.get(key) != after.get(key) for key in _POLICY_BY):
            self._notify_policies()

    def port_deleted(self, resource, event, trigger, payload):
        """Tell the host that had the port."""
        self._notify(payload.latest_state)
        self._notify_networks(payload.latest_state)
        if payload.latest_state.get('security_groups'):
            self._notify_policies()

    def rules_changed(self, resource, event, trigger, payload):
        """Tell the hosts of ClickOS guests that rules have changed.

        A rule came or went, or an address group has other addresses.
        """
        self._notify_policies()

    def check_rule(self, resource, event, trigger, payload):
        """Refuse a rule that a port of its group has no room for.

        :raises: TooManyRules, an HTTP 409
        """
        rule = payload.latest_state or {}
        group = rule.get('security_group_id')
        if group:
            filters.check_room(payload.context.elevated(), group, [rule])

    def members_changed(self, resource, event, trigger, payload):
        """Tell them that a group, which rules may name, has one more port."""
        if payload.latest_state.get('security_groups'):
            self._notify_policies()

    def network_updated(self, resource, event, trigger, payload):
        """Tell them that the network has another QoS policy."""
        before, after = payload.states[0], payload.latest_state
        if before.get(QOS_POLICY) != after.get(QOS_POLICY):
            self._notify_policies()

    def _notify_policies(self):
        agents = directory.get_plugin().get_agents(
            neutron_context.get_admin_context(),
            filters={'agent_type': [neutron_rpc.AGENT_TYPE]}, fields=['host'])
        for agent in agents:
            self._notifier.policies_changed(agent['host'])

    def _notify_networks(self, *ports):
        """Tell the hosts of a port's network that its hosts may change."""
        hosts = {port[portbindings.HOST_ID] for port in ports
                 if _is_plugged(port)}
        for host in sorted(hosts.union(
                uplinks.hosts_of(ports[0]['network_id']))):
            self._notifier.networks_changed(host)

    def _notify(self, port):
        if _is_plugged(port):
            self._notifier.ports_changed(port[portbindings.HOST_ID],
                                         [port['id']])

    def update_port_precommit(self, context):
        """Keep what the switch enforces where the guest's next start finds it.

        :raises: MacFixed, TooManyAddresses, each an HTTP 409
        """
        super().update_port_precommit(context)  # active when it forwards
        before, after = context.original, context.current
        if after[portbindings.VIF_TYPE] != VIF_TYPE:
            return
        if after['mac_address'] != before['mac_address']:
            raise MacFixed(port=after['id'])
        enforced = _enforced(after)
        if _is_plugged(before) and enforced != _enforced(before):
            _keep(context, after, enforced)


def _is_plugged(port):
    """:returns: whether a host's switch may have the port"""
    return port.get(portbindings.VIF_TYPE) == VIF_TYPE and \
        bool(port.get(portbindings.HOST_ID))


def _owner(port):
    return port['device_id'], port['device_owner']


def _changed_owner(port, request):
    """:returns: the owner that a port has after a request"""
    return tuple(request.get(key, port[key])
                 for key in ('device_id', 'device_owner'))


def _sets_free(port, owner):
    """:returns: whether a server loses its port; others' ports have UUIDs of
    routers, of which Nova knows nothing
    """
    return owner == ('', '') and port['device_owner'].startswith(
        constants.DEVICE_OWNER_COMPUTE_PREFIX)


def _moves(port, request):
    """:returns: whether a request takes the port from its host"""
    host = request.get(portbindings.HOST_ID, constants.ATTR_NOT_SPECIFIED)
    return host is not constants.ATTR_NOT_SPECIFIED and \
        (host or '') != port[portbindings.HOST_ID]


def _keep(context, port, enforced):
    """Store what the switch enforces in the binding."""
    binding = port_objects.PortBinding.get_object(
        context.plugin_context, port_id=port['id'],
        host=port[portbindings.HOST_ID])
    details = {**(binding.vif_details or {}), **enforced}
    size = len(jsonutils.dumps(details))
    if size > MAX_DETAILS:
        raise TooManyAddresses(port=port['id'], size=size, max=MAX_DETAILS)
    binding.vif_details = details
    binding.update()


def _enforced(port):
    """:returns: the part of a binding that may change while a guest runs"""
    return {
        'vale_link_up': port['admin_state_up'],
        'vale_port_security': _secured(port),
        'vale_filtered': _secured(port),
        'vale_allowed': addresses.allowed(port),
        'vale_dhcp_server': _serves_dhcp(port),
        portbindings.CAP_PORT_FILTER: _secured(port),
    }


def _secured(port):
    return port.get(port_security.PORTSECURITY, True)


def _serves_dhcp(port):
    """:returns: whether clickos-api has given the port this role"""
    return port_roles.DHCP_SERVER in port_roles.of_profile(
        port.get(portbindings.PROFILE))


def _mtu_fits(context):
    mtu = context.network.current.get('mtu') or 0
    if mtu > limits.MTU:
        LOG.warning('Port %(port)s is not bound: MTU %(mtu)d of network '
                    '%(network)s, a vale switch takes at most %(max)d',
                    {'port': context.current['id'], 'mtu': mtu,
                     'network': context.network.current['id'],
                     'max': limits.MTU})
    return mtu <= limits.MTU


def _owner_number(port):
    """:returns: a number of the port's project, if it has one"""
    project = port.get('project_id')
    if not project:
        return {}
    digest = hashlib.sha256(project.encode()).digest()
    return {'vale_owner': int.from_bytes(digest[:6], 'big')}


def _vif_details(port, switch, number):
    return {
        'vale_switch': switch,
        'vale_segment': number,
        'vale_port': 'p' + port['id'][:11],
        **_owner_number(port),
        **_enforced(port),
        portbindings.VIF_DETAILS_CONNECTIVITY: portbindings.CONNECTIVITY_L2,
    }
