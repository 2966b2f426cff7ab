# SPDX-License-Identifier: Apache-2.0
"""Configuration of clickos-agent."""

import socket

from oslo_config import cfg

GROUP = cfg.OptGroup('clickos_agent', title='ClickOS agent')

_DEFAULT_OPTS = [
    cfg.HostDomainOpt('host', default=socket.gethostname(),
                      sample_default='<current_hostname>', help="""
Name under which clickos-api calls this agent.

It must equal ``[DEFAULT] host`` of the nova-compute on the same host.
"""),
]
_OPTS = [
    cfg.StrOpt('cosmosd_socket', default='/run/clickos/cosmosd.sock', help="""
Path of cosmosd's UNIX socket on this host.

The user the agent runs as must have the ``agent`` role in cosmosd's
configuration.
"""),
    cfg.StrOpt('neutron_transport_url', secret=True, help="""
URL of Neutron's message queue, as in ``[DEFAULT] transport_url`` of Neutron.

Neutron announces here that a port was unbound, deleted or disabled, and the
agent asks here for the state of its host's ports. The user in it needs
rights on ``neutron-vale.*`` and ``reply_.*`` only. Unset, it is ``[DEFAULT]
transport_url``.

Related options: ``port_resync_interval``
"""),
    cfg.IntOpt('port_resync_interval', default=10, min=1, max=10,
               deprecated_name='port_look_interval', help="""
Seconds between two polls of all ports of the host.

A poll finds the change that a lost message of Neutron announced. The agent
unplugs or sets a port that is wrong in two polls in a row, within at most 30
seconds.

Related options: ``neutron_transport_url``
"""),
    cfg.IPOpt('tunnel_ip', help="""
Address of this host at which it exchanges VXLAN networks with other hosts.

Without it Neutron binds no port of a VXLAN network here. The network between
the hosts is trusted, and its MTU is larger than the tenants' by 50 bytes, or
by 70 with IPv6.

Related options: ``[ml2_vale] tunnel_switch`` of Neutron
"""),
    cfg.DictOpt('interface_mappings', default={}, help="""
Interfaces of this host by physical network, for example
``physnet1:eth1,physnet2:eth2``.

The switch sends frames of VLAN and flat networks there. An interface carries
one flat network or any number of VLANs, not both. Networks whose physical
network is not listed remain within the host.
"""),
    cfg.IntOpt('report_interval', default=30, min=1, max=600, help="""
Seconds between two reports to Neutron that this agent is alive.

After ``[DEFAULT] agent_down_time`` of neutron.conf without a report, Neutron
binds no port of this host. Keep the interval below half of that time.
"""),
    cfg.StrOpt('state_dir', help="""
Folder in which the agent keeps the definitions of the chains in force.

After a restart of the agent and the switch together, as after a reboot of the
host, packets bypass no chain that was in force before. Unset, it is the first
folder of systemd's ``STATE_DIRECTORY``; without that nothing is kept.
"""),
    cfg.HostAddressOpt('metrics_host', default='127.0.0.1', help="""
Address at which the agent answers on ``metrics_port``.
"""),
    cfg.PortOpt('metrics_port', help="""
Port on which the agent answers Prometheus at ``/metrics``. Unset: none.

The figures are the agent's own and those of cosmosd.
"""),
]


def register_opts(conf):
    """Register all options; may be called twice."""
    conf.register_opts(_DEFAULT_OPTS)
    conf.register_group(GROUP)
    conf.register_opts(_OPTS, group=GROUP)


def list_opts():
    """:returns: list of (group, options), for oslo-config-generator"""
    return [('DEFAULT', _DEFAULT_OPTS), (GROUP, _OPTS)]
