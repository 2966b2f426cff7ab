# SPDX-License-Identifier: Apache-2.0
"""Neutron's DHCP and L3 agents, on the first host of a lab with two.

They make network namespaces and start dnsmasq in them, so they are root. Each
has processes and a folder /run of its own: what it makes ends with it.
"""

from clickos_lab.config import hosts
from clickos_lab.config import rabbit

PROGRAMS = ('neutron-dhcp-agent', 'neutron-l3-agent')
#: Contexts of neutron.privileged.
_CONTEXTS = ('', '_dhcp_release', '_namespace', '_conntrack', '_link')
#: The shell reaps the daemons' parents. dnsmasq has no rights.
_ENTER = 'mount -t tmpfs -o mode=755 run /run && umask 022 && ' \
    'mkdir /run/netns && "$@" & wait $!'
_STATE = '/run/neutron'


def wanted(compute_hosts):
    """Tell whether a lab with these hosts has the agents."""
    return hosts.SECOND in compute_hosts


def command(state, program):
    """Return the command that runs an agent."""
    return ['unshare', '--mount', '--propagation=private', '--pid', '--fork',
            '--kill-child', '--mount-proc', 'sh', '-c', _ENTER, 'sh',
            state.tool(program), '--config-file', _path(state, program)]


def _path(state, program):
    return state.etc / f'neutron/{program}.conf'


def write(site):
    """Write a file for each agent, if the lab has them."""
    for program in PROGRAMS if wanted(site.compute_hosts) else ():
        _write(site, program)


def _write(site, program):
    helper = f'{site.state.tool("privsep-helper")} --config-file ' \
        f'{_path(site.state, program)}'
    site.write_ini(f'neutron/{program}.conf', {
        'DEFAULT': {
            'transport_url': site.rabbit_url('neutron', 'neutron'),
            'host': hosts.PROCESS.name, 'state_path': _STATE,
            'interface_driver': 'vale', 'enable_metadata_proxy': False,
            'graceful_shutdown_timeout': 2},
        # The agent is root itself.
        'AGENT': {'root_helper': '', 'report_interval': 10},
        'oslo_concurrency': {'lock_path': f'{_STATE}/lock'},
        'oslo_messaging_rabbit': rabbit.options(site),
        **{f'privsep{context}': {'helper_command': helper}
           for context in _CONTEXTS}}, 'neutron')
