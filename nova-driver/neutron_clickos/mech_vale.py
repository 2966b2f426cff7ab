# SPDX-License-Identifier: Apache-2.0
"""ML2 mechanism driver ``vale``: binds ports to the switch of a ClickOS host.

No agent: all a host has to know travels in binding:vif_details to the Nova
driver, which plugs the port when it starts the guest.
"""

from neutron_lib.api.definitions import port_security
from neutron_lib.api.definitions import portbindings
from neutron_lib import constants
from neutron_lib import exceptions
from neutron_lib.plugins.ml2 import api
from oslo_config import cfg
from oslo_log import log as logging
from oslo_serialization import jsonutils

from neutron_clickos import addresses
from neutron_clickos import conf

LOG = logging.getLogger(__name__)

VIF_TYPE = 'vale'
#: A buffer of the rings holds 2 KiB, headers and encapsulation included.
MAX_MTU = 1900
#: Neutron's column for binding:vif_details takes 4095; it adds a little.
MAX_DETAILS = 4000


class AddressesFixed(exceptions.Conflict):
    """An update that a running guest's switch port would not follow."""

    message = ("Port %(port)s belongs to a ClickOS guest, and the switch "
               "checks the addresses the port was bound with. Addresses, "
               "allowed address pairs and port security can be changed only "
               "while the port belongs to no server.")


class ValeMechanismDriver(api.MechanismDriver):
    """Binds normal ports of mapped VLAN networks, on any host asked for.

    The host must run nova-compute with nova_clickos; nobody tells Neutron,
    so a port bound for another host fails there, in Nova.
    """

    def initialize(self):
        """Read the configuration.

        :raises: ValueError for a bad ``switch_mappings``; Neutron ends.
        """
        conf.register_opts(cfg.CONF)
        self._switches = conf.switches(cfg.CONF)
        LOG.info('Mechanism driver vale, switches: %s', self._switches)

    @property
    def connectivity(self):
        """:returns: layer 2: ports without an address are bound, too"""
        return portbindings.CONNECTIVITY_L2

    def bind_port(self, context):
        """Bind to the first VLAN segment whose network has a switch."""
        port = context.current
        if port[portbindings.VNIC_TYPE] != portbindings.VNIC_NORMAL:
            return
        for segment in context.segments_to_bind:
            switch = self._switch(segment)
            if switch and _mtu_fits(context):
                self._bind(context, segment, _vif_details(port, switch,
                                                          segment))
                return

    def _switch(self, segment):
        if segment[api.NETWORK_TYPE] != constants.TYPE_VLAN:
            return None
        return self._switches.get(segment[api.PHYSICAL_NETWORK])

    def _bind(self, context, segment, details):
        size = len(jsonutils.dumps(details))
        if size > MAX_DETAILS:
            LOG.warning('Port %(port)s is not bound: its addresses take '
                        '%(size)d bytes, Neutron room is for %(max)d',
                        {'port': context.current['id'], 'size': size,
                         'max': MAX_DETAILS})
            return
        context.set_binding(segment[api.ID], VIF_TYPE, details,
                            status=constants.PORT_STATUS_ACTIVE)

    def update_port_precommit(self, context):
        """Refuse what would be stored but not take effect.

        :raises: AddressesFixed, an HTTP 409
        """
        still_bound = context.current[portbindings.VIF_TYPE] == VIF_TYPE
        if still_bound and _checks(context.current) != \
                _checks(context.original):
            raise AddressesFixed(port=context.current['id'])


def _checks(port):
    """:returns: what the switch checks frames against, comparable"""
    if not _secured(port):
        return None
    return sorted((entry['mac'], entry['ip'])
                  for entry in addresses.allowed(port))


def _secured(port):
    return port.get(port_security.PORTSECURITY, True)


def _mtu_fits(context):
    mtu = context.network.current.get('mtu') or 0
    if mtu > MAX_MTU:
        LOG.warning('Port %(port)s is not bound: MTU %(mtu)d of network '
                    '%(network)s, a vale switch takes at most %(max)d',
                    {'port': context.current['id'], 'mtu': mtu,
                     'network': context.network.current['id'],
                     'max': MAX_MTU})
    return mtu <= MAX_MTU


def _vif_details(port, switch, segment):
    return {
        'vale_switch': switch,
        'vale_segment': segment[api.SEGMENTATION_ID],
        'vale_port': 'p' + port['id'][:11],
        'vale_port_security': _secured(port),
        'vale_allowed': addresses.allowed(port),
        portbindings.CAP_PORT_FILTER: False,
        portbindings.VIF_DETAILS_CONNECTIVITY: portbindings.CONNECTIVITY_L2,
    }
