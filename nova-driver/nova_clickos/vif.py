# SPDX-License-Identifier: Apache-2.0
"""Nova's network_info to cosmosd's vifs (docs/interfaces.md)."""

from clickos_client import limits
from nova.network import model

from nova_clickos.conf import CONF
from nova_clickos import exception

VIF_TYPE = 'vale'
DEFAULT_MTU = 1500
_NORMAL = 'normal'


def from_network_info(network_info):
    """Translate every interface of a server, in Nova's order.

    :param network_info: NetworkInfo or None
    :returns: list of dicts for cosmosd's ``create``
    :raises: GuestNotStarted naming the port that cannot be used
    """
    return [_vif(devid, vif) for devid, vif in enumerate(network_info or ())]


def of_new_port(vif):
    """Translate an interface for a guest that runs.

    :param vif: VIF of Nova
    :returns: dict for cosmosd's ``vif-plug``, of devid 0
    :raises: GuestNotStarted naming the port that cannot be used
    """
    return _vif(0, vif)


def _vif(devid, vif):
    if vif['type'] == model.VIF_TYPE_BINDING_FAILED:
        raise _bad(vif, 'Neutron could not bind it to the host: %s'
                   % _obstacle(vif))
    if vif['type'] != VIF_TYPE:
        raise _bad(vif, 'expected the binding "%s", got "%s": the mechanism '
                   'driver "vale" of Neutron has not bound it'
                   % (VIF_TYPE, vif['type']))
    details = vif['details']
    try:
        return {
            'devid': devid,
            'mac': vif['address'],
            'switch': details['vale_switch'],
            'port': details['vale_port'],
            'segment': details['vale_segment'],
            'allowed': details['vale_allowed'],
            'port_security': details['vale_port_security'],
            **_flags(details),
            **_owner(details),
            'mtu': _mtu(vif),
            'slots': CONF.clickos.ring_slots,
            'port_id': vif['id'],
            # A port that an older release bound does not say: it is up.
            'link': 'up' if details.get('vale_link_up', True) else 'down',
        }
    except KeyError as e:
        raise _bad(vif, 'binding:vif_details lack %s: is the mechanism driver '
                   'of the same release?' % e)


def _obstacle(vif):
    """Return what keeps the mechanism driver from binding a port.

    A tenant reads it, so it has no name of a physical network.
    """
    kind = vif.get('vnic_type') or _NORMAL
    network = vif['network']
    if kind != _NORMAL:
        return 'its vnic_type is "%s", a ClickOS host has "%s" only' % (
            kind, _NORMAL)
    _mtu(vif)
    if network.get_meta('tunneled'):
        return ('its network is a tunnel, and the host carries VXLAN only, '
                'while its agent is alive and has a tunnel_ip')
    if network.get_meta('physical_network'):
        return ("its network is not VLAN or flat, the host's switches do not "
                'lead to its physical network, or the agent is not alive')
    return ("the host's agent is not alive, or the network is local and "
            'another one has its number')


def _flags(details):
    """Return the keys of a port with a role or security groups."""
    return {key: True for key in ('dhcp_server', 'filtered')
            if details.get(f'vale_{key}')}


def _owner(details):
    """Return the number of the port's project; an older release has none."""
    owner = details.get('vale_owner')
    return {} if owner is None else {'owner': owner}


def _mtu(vif):
    mtu = vif['network'].get_meta('mtu') or DEFAULT_MTU
    if mtu > limits.MTU:
        raise _bad(vif, 'MTU %d, a ClickOS guest takes at most %d'
                   % (mtu, limits.MTU))
    return mtu


def _bad(vif, reason):
    return exception.GuestNotStarted(reason='port %s: %s'
                                     % (vif['id'], reason))
