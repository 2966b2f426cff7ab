# SPDX-License-Identifier: Apache-2.0
"""Names of the RPC between Neutron and clickos-agent (docs/interfaces.md).

Both sides import this module, so it imports nothing of Neutron.
"""

#: An exchange of its own: a broker can limit an agent's user to it.
EXCHANGE = 'neutron-vale'
#: Served by Neutron's RPC workers.
PLUGIN = 'neutron-vale-plugin'
#: Served by the agent of each host, ``server`` is the host's name.
AGENT = 'neutron-vale-agent'
VERSION = '1.1'
#: Version of the calls that an earlier release knows, too.
FIRST_VERSION = '1.0'
#: Format of rules and limits, the argument ``policy_format`` since 1.1. The
#: second one has codes of ICMP, stateless rules, bursts and DSCP marks.
POLICY_FORMAT = 2
#: Tries of a message after the first one. With 0, kombu 5 never replaces a
#: broken connection of the pool, so that no later message is sent either.
RETRIES = 1

#: The agent's type and program in Neutron's list of agents.
AGENT_TYPE = 'ClickOS agent'
BINARY = 'clickos-agent'

#: Ports of one ``get_port_states`` or ``ports_changed``.
MAX_PORTS = 500

#: States of a port: its link is up; its link is down; the guest loses it.
UP = 'up'
DOWN = 'down'
ABSENT = 'absent'

#: The longest name of an interface of Linux, without its end.
_NAME = 14


def device(port_id):
    """Return the interface of a host that leads to a device of Neutron.

    :param port_id: of the port of a DHCP server or router
    """
    return f'tap{port_id}'[:_NAME]


#: Types of networks that lead to other hosts, as Neutron names them.
VLAN = 'vlan'
FLAT = 'flat'
VXLAN = 'vxlan'
