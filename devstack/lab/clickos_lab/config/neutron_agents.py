# SPDX-License-Identifier: Apache-2.0
"""Neutron's DHCP and L3 agents, on the first host of a lab with two.

They are users like the other services. They ask ``root_helper.py`` for
privsep's helpers and for dnsmasq, and Neutron's rootwrap decides. Each agent
has processes and a folder /run of its own: what it makes ends with it.
"""

import re

from clickos_lab import accounts
from clickos_lab.config import hosts
from clickos_lab.config import rabbit
from clickos_lab import paths

PROGRAMS = ('neutron-dhcp-agent', 'neutron-l3-agent')
#: Contexts of neutron.privileged, by the end of their section's name.
_CONTEXTS = {'': 'default', '_dhcp_release': 'dhcp_release_cmd',
             '_namespace': 'namespace_cmd', '_conntrack': 'conntrack_cmd',
             '_link': 'link_cmd'}
_STATE, _SOCKET = '/run/neutron', '/run/root-helper.sock'
#: The shell reaps the daemons' parents. dnsmasq has no rights.
_ENTER = 'mount -t tmpfs -o mode=755 run /run && umask 022 && ' \
    f'mkdir /run/netns {_STATE} && chown "$1:$1" {_STATE} && shift && ' \
    '"$@" & wait $!'
#: Copied, because the account cannot enter the repository.
_HELPER = paths.REPO / 'devstack/lab/clickos_lab/root_helper.py'


def wanted(compute_hosts):
    """Return whether a lab with these hosts has the agents."""
    return hosts.SECOND in compute_hosts


def command(state, uid, agent):
    """Return the command that runs an agent and its root helper.

    :param agent: the command that runs the agent alone, as a user
    """
    return ['unshare', '--mount', '--propagation=private', '--pid', '--fork',
            '--kill-child', '--mount-proc', 'sh', '-c', _ENTER, 'sh',
            str(uid), *_helper(state), 'serve', _SOCKET, str(uid),
            state.tool('neutron-rootwrap'),
            state.etc / 'neutron/rootwrap.conf', *agent]


def _helper(state):
    return [state.tool('python'), '-I', state.etc / 'neutron/root_helper.py']


def write(site):
    """Write the agents' files, if the lab has them."""
    if not wanted(site.compute_hosts):
        return
    site.write('neutron/root_helper.py', _HELPER.read_text(), 'neutron')
    _write_rootwrap(site)
    for program in PROGRAMS:
        _write(site, program)


def _write_rootwrap(site):
    """Allow the commands that the agents do not ask privsep for."""
    home = accounts.home(site.state, 'neutron')
    files = '|'.join(re.escape(str(_path(site, p))) for p in PROGRAMS)
    privsep = ('privsep-helper', '--config-file', f'({files})',
               '--privsep_context',
               rf'neutron\.privileged\.({"|".join(_CONTEXTS.values())})',
               '--privsep_sock_path', rf'{re.escape(str(home))}/\w+/\w+\.sock')
    site.write_ini('neutron/rootwrap.d/agents.filters', {'Filters': {
        'privsep': f'RegExpFilter, {site.state.tool("privsep-helper")}, '
                   f'root, {", ".join(privsep)}',
        'ip_exec': 'IpNetnsExecFilter, ip, root',
        'dnsmasq': 'EnvFilter, env, root, PROCESS_TAG=, dnsmasq'}}, 'neutron')
    site.write_ini('neutron/rootwrap.conf', {'DEFAULT': {
        'filters_path': site.state.etc / 'neutron/rootwrap.d',
        'exec_dirs': '/usr/sbin,/usr/bin,/sbin,/bin'}}, 'neutron')


def _path(site, program):
    return site.state.etc / f'neutron/{program}.conf'


def _write(site, program):
    root = ' '.join(map(str, (*_helper(site.state), 'ask', _SOCKET)))
    privsep = f'{root} privsep-helper --config-file {_path(site, program)}'
    site.write_ini(f'neutron/{program}.conf', {
        'DEFAULT': {
            'transport_url': site.rabbit_url('neutron', 'neutron'),
            'host': hosts.PROCESS.name, 'state_path': _STATE,
            'interface_driver': 'vale', 'enable_metadata_proxy': False,
            'graceful_shutdown_timeout': 2},
        'AGENT': {'root_helper': root, 'report_interval': 10},
        'oslo_concurrency': {'lock_path': f'{_STATE}/lock'},
        'oslo_messaging_rabbit': rabbit.options(site),
        **{f'privsep{context}': {'helper_command': privsep}
           for context in _CONTEXTS}}, 'neutron')
