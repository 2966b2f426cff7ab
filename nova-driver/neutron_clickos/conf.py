# SPDX-License-Identifier: Apache-2.0
"""Group ``[ml2_vale]`` of Neutron's configuration."""

import re

from neutron_lib.utils import helpers
from oslo_config import cfg

GROUP = cfg.OptGroup('ml2_vale', title='ML2 mechanism driver vale')

_OPTS = [
    cfg.ListOpt('switch_mappings', default=[], help="""
Comma-separated list of ``<physical_network>:<switch>``, for example
``physnet1:vale0``: the switch of each ClickOS host that carries the VLAN
networks of a physical network.

A switch is called ``vale`` and a number, and carries one physical network:
two would share their VLANs. The mapping holds for every host: there is no
agent that could report another one. Networks whose physical network is not
listed are left to other mechanism drivers.

Related options: ``[ml2_type_vlan] network_vlan_ranges``
"""),
    cfg.StrOpt('tunnel_switch', default='vale0', help="""
The switch of each ClickOS host that carries VXLAN and local networks.

A host carries VXLAN networks if its clickos-agent has a ``tunnel_ip``. Local
networks never leave their host.
"""),
]
_SWITCH = re.compile(r'vale[0-9]{1,3}')


def register_opts(conf):
    """Register the group and its options; may be called twice."""
    conf.register_group(GROUP)
    conf.register_opts(_OPTS, group=GROUP)


def list_opts():
    """:returns: list of (group, options), for oslo-config-generator"""
    return [(GROUP, _OPTS)]


def switches(conf):
    """Read ``switch_mappings``.

    :returns: dict of switch by physical network
    :raises: ValueError naming the option and the bad entry
    """
    try:
        found = helpers.parse_mappings(conf.ml2_vale.switch_mappings)
    except ValueError as e:
        raise ValueError('[ml2_vale] switch_mappings: %s' % e)
    _check('tunnel_switch', '', conf.ml2_vale.tunnel_switch)
    for network, switch in found.items():
        _check('switch_mappings', network + ':', switch)
    return found


def _check(option, network, switch):
    if not _SWITCH.fullmatch(switch):
        raise ValueError('[ml2_vale] %s: %s%s: a switch is called "vale" and '
                         'a number, like vale0' % (option, network, switch))
