# SPDX-License-Identifier: Apache-2.0
"""Neutron's half of the RPC with clickos-agent (docs/interfaces.md)."""

import functools

from clickos_client import neutron_rpc
from neutron.db import models_v2
from neutron.plugins.ml2 import models
from neutron_lib import context as neutron_context
from neutron_lib.db import api as db_api
from neutron_lib.plugins import directory
from neutron_lib import rpc as n_rpc
from oslo_log import log as logging
import oslo_messaging
from oslo_utils import netutils
from oslo_utils import timeutils
from oslo_utils import uuidutils

from neutron_clickos import filters
from neutron_clickos import guards
from neutron_clickos import qos
from neutron_clickos.sfc import sfc_db
from neutron_clickos import uplinks
from neutron_clickos import wiring

LOG = logging.getLogger(__name__)

#: Physical networks of a host.
MAX_INTERFACES = 64
#: Of packets a second.
MAX_RATE = 1 << 53
_RATES = {'packets_per_s', 'dropped_per_s'}
#: What an agent says of its host since 0.3: the release of the agent and of
#: cosmosd, the kind of host, and the SHA-256 of the engine of its guests.
_INSTALLED = ('release', 'cosmosd', 'host_kind', 'engine_sha256')


class BadRequest(Exception):
    """An argument that is not what the contract says."""


def _for_a_host(answer):
    """Check a request's host; answer a bad request by ``error``."""
    @functools.wraps(answer)
    def checked(endpoint, context, host=None, **arguments):
        try:
            if not isinstance(host, str) or not 1 <= len(host) <= 255:
                raise BadRequest('host: expected 1 to 255 characters')
            return answer(endpoint, context, host, **arguments)
        except BadRequest as e:
            LOG.warning('%s: %s', answer.__name__, e)
            return {'error': str(e)}
    return checked


class PortStates:
    """Answers agents that ask for the states of ports.

    It answers from the database. Agents change nothing but the status of
    their ports. Each answer is a dict; that of a bad request has ``error``,
    the reason, and nothing else.
    """

    target = oslo_messaging.Target(version=neutron_rpc.VERSION)

    @_for_a_host
    def get_port_states(self, context, host, ports=None):
        """Return whether a host's ports are still bound there.

        :param host: the agent's host.
        :param ports: list of pairs [port id, server id].
        :returns: ``states``: ``up``, ``down`` or ``absent`` by port id
        """
        wanted = _pairs(ports)
        bound = _bound(host, wanted)
        return {'states': {
            port: bound.get((port, server), neutron_rpc.ABSENT)
            for port, server in wanted}}

    @_for_a_host
    def get_port_policies(self, context, host, ports=None, policy_format=1):
        """List the rules, limits and allowed addresses of a host's ports.

        :param host: the agent's host.
        :param ports: list of pairs [port id, server id].
        :param policy_format: of the rules and limits, as in neutron_rpc.
        :returns: ``rules``, ``limits`` and ``guards``, each by the ids of the
            ports that are bound there; ``refused``, the reason by the id of
            a port without an entry in ``rules``
        """
        if type(policy_format) is not int or policy_format < 1:
            raise BadRequest('policy_format: expected 1 or more')
        wanted = _pairs(ports)
        bound = [port for port, _server in _bound(host, wanted)]
        rules, refused = filters.of_ports(bound, policy_format)
        return {'rules': rules, 'refused': refused,
                'limits': qos.of_ports(bound, policy_format),
                'guards': guards.of_ports(host, bound)}

    @_for_a_host
    def get_networks(self, context, host):
        """List the networks that have ports on a host.

        :param host: the agent's host.
        :returns: ``networks``
        """
        return {'networks': uplinks.of_host(host)}

    @_for_a_host
    def get_devices(self, context, host):
        """List the DHCP servers' and routers' ports on a host.

        :param host: the agent's host.
        :returns: ``devices``
        """
        return {'devices': uplinks.devices_of(host)}

    @_for_a_host
    def get_active_ports(self, context, host):
        """List the active ports that are bound to a host.

        :param host: the agent's host.
        :returns: ``ports``
        """
        return {'ports': wiring.active(host)}

    @_for_a_host
    def report_ports(self, context, host, up=None, down=None):
        """Note which ports the switch of a host forwards for.

        :param host: the agent's host.
        :param up: ids of ports that it forwards for from now on.
        :param down: ids of ports that it does not forward for any more.
        :returns: an empty dict
        """
        wiring.report(host, _ids('up', up), _ids('down', down))
        return {}

    @_for_a_host
    def report_state(self, context, host, start=False, links=None, load=None):
        """Note that a host's agent is alive.

        :param host: the agent's host.
        :param start: the agent has just started.
        :param links: dict tunnel_ip, interfaces: how it reaches others.
        :param load: dict packets_per_s, dropped_per_s of its switch, or None.
        :returns: an empty dict
        """
        configurations = {**_configurations(host, links or {}),
                          **_load(load)}
        agent = {'agent_type': neutron_rpc.AGENT_TYPE,
                 'binary': neutron_rpc.BINARY, 'host': host,
                 'topic': neutron_rpc.AGENT,
                 'configurations': configurations}
        if start is True:
            agent['start_flag'] = True
        directory.get_plugin().create_or_update_agent(
            neutron_context.get_admin_context(), agent, timeutils.utcnow())
        return {}

    @_for_a_host
    def get_chains(self, context, host):
        """List a host's port chains as arguments of chain-set.

        :param host: the agent's host.
        :returns: ``chains`` and ``kept``
        """
        return sfc_db.chains_of(host)


def _configurations(host, links):
    """Check how a host reaches others; the keys are Neutron's own.

    Another host's address would draw its VXLAN networks to this one.
    """
    if not isinstance(links, dict):
        raise BadRequest('links: expected a dict')
    address, interfaces = links.get('tunnel_ip'), links.get('interfaces', {})
    if not isinstance(interfaces, dict) or len(interfaces) > MAX_INTERFACES \
            or not all(isinstance(text, str) and len(text) <= 64
                       for pair in interfaces.items() for text in pair):
        raise BadRequest('links.interfaces: expected at most %d interfaces '
                         'by physical network' % MAX_INTERFACES)
    found = {'interface_mappings': interfaces, **_installed(links)}
    if address is None:
        return found
    if not netutils.is_valid_ip(address):
        raise BadRequest('links.tunnel_ip: expected an IP address')
    owner = uplinks.host_of(address)
    if owner not in (None, host):
        raise BadRequest('links.tunnel_ip: %s is of host %s'
                         % (address, owner))
    return {**found, 'tunneling_ip': address, 'tunnel_types': ['vxlan'],
            'l2pop_network_types': ['vxlan']}


def _installed(links):
    """Check what runs on a host; clickos-status compares it."""
    found = {key: links[key] for key in _INSTALLED if links.get(key)}
    if not all(isinstance(text, str) and len(text) <= 64
               for text in found.values()):
        raise BadRequest('links: %s: expected at most 64 characters'
                         % ', '.join(_INSTALLED))
    return found


def _load(load):
    """Check what a switch moves; the key is ours."""
    if load is None:
        return {}
    if not isinstance(load, dict) or load.keys() != _RATES or not all(
            type(rate) is int and 0 <= rate < MAX_RATE
            for rate in load.values()):
        raise BadRequest('load: expected %s, numbers below %d'
                         % (', '.join(sorted(_RATES)), MAX_RATE))
    return {'load': load}


def _ids(place, ports):
    if not isinstance(ports, list) or len(ports) > neutron_rpc.MAX_PORTS \
            or not all(map(uuidutils.is_uuid_like, ports)):
        raise BadRequest('%s: expected at most %d UUIDs'
                         % (place, neutron_rpc.MAX_PORTS))
    return ports


def _pairs(ports):
    if not isinstance(ports, list) or len(ports) > neutron_rpc.MAX_PORTS:
        raise BadRequest('ports: expected at most %d pairs [port, server]'
                         % neutron_rpc.MAX_PORTS)
    for index, pair in enumerate(ports):
        if not isinstance(pair, (list, tuple)) or len(pair) != 2 \
                or not all(map(uuidutils.is_uuid_like, pair)):
            raise BadRequest('ports[%d]: expected [port, server], two UUIDs'
                             % index)
    return [tuple(pair) for pair in ports]


def _bound(host, wanted):
    """Return the state by (port id, server id) of those bound to the host.

    A port of a guest that moves is bound to two hosts: its binding to the
    target is inactive until the guest has arrived.
    """
    context = neutron_context.get_admin_context()
    port, binding = models_v2.Port, models.PortBinding
    with db_api.CONTEXT_READER.using(context) as session:
        rows = session.query(
            port.id, port.device_id, port.admin_state_up).join(
                binding, binding.port_id == port.id).filter(
                    port.id.in_([one for one, _ in wanted]),
                    binding.host == host,
                    binding.vif_type == 'vale').all()
    return {(row.id, row.device_id):
            neutron_rpc.UP if row.admin_state_up else neutron_rpc.DOWN
            for row in rows}


def make_server(host):
    """:returns: the RPC server of this Neutron process, not started"""
    return n_rpc.get_server(
        oslo_messaging.Target(exchange=neutron_rpc.EXCHANGE,
                              topic=neutron_rpc.PLUGIN, server=host),
        [PortStates()])


class AgentNotifier:
    """Tells a host's agent that ports have changed.

    The message is a hint without an order: the agent asks for the state. A
    lost one costs time only, so a broker that is away delays no request.
    """

    def __init__(self):
        self._client = None

    def ports_changed(self, host, port_ids):
        """Send the hint, without the user's token; a failure is logged."""
        self._cast(host, 'ports_changed', port_ids=port_ids)

    def policies_changed(self, host):
        """Send the hint that rules or limits of the host's ports changed."""
        self._cast(host, 'policies_changed')

    def chains_changed(self, host):
        """Send the hint that the host's chains changed."""
        self._cast(host, 'chains_changed')

    def networks_changed(self, host):
        """Send the hint that a network of the host has other hosts."""
        self._cast(host, 'networks_changed')

    def _cast(self, host, method, **arguments):
        context = neutron_context.get_admin_context_without_session()
        try:
            self._connected().prepare(
                server=host, retry=neutron_rpc.RETRIES).cast(
                    context, method, **arguments)
        except Exception as e:
            LOG.warning('Host %(host)s got no %(method)s: %(why)s; its agent '
                        'asks by itself',
                        {'host': host, 'method': method, 'why': e})

    def _connected(self):
        # Neutron forks its workers after it has made its drivers.
        if self._client is None:
            self._client = n_rpc.get_client(oslo_messaging.Target(
                exchange=neutron_rpc.EXCHANGE, topic=neutron_rpc.AGENT,
                version=neutron_rpc.FIRST_VERSION))
        return self._client
