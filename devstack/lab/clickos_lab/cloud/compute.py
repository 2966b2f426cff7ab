# SPDX-License-Identifier: Apache-2.0
"""Nova: the compute hosts and the flavor of a guest."""

import time

from clickos_lab.config import options
from clickos_lab import errors
from clickos_lab import processes
from clickos_lab import shell

FLAVOR = {
    'name': options.DEFAULTS['CLICKOS_FLAVOR'],
    **{key: int(options.DEFAULTS[f'CLICKOS_FLAVOR_{key.upper()}'])
       for key in ('ram', 'vcpus', 'disk')}}
#: clickos-agent in Neutron's list of agents.
_AGENT_TYPE = 'ClickOS agent'
#: Seconds between two looks at servers whose times are measured.
_LOOK_S = 0.05
_EXTRA_SPECS = dict(
    pair.split('=')
    for pair in options.DEFAULTS['CLICKOS_FLAVOR_PROPERTIES'].split())


def ensure_host(state, admin, host, timeout_s=60):
    """Map a compute host to its cell, once, and wait until it is up.

    :raises LabError: if nova-compute dies or does not report in time.
    """
    name = f'nova-compute{host.suffix}'
    stamp = state.data / f'{name}.stamp'
    running = processes.Processes(state)

    def up():
        running.require(name)
        return _service_up(admin, host, running.started(name))

    wait(up, timeout_s, f'{name} reports up')
    if not stamp.exists():
        shell.run([state.tool('nova-manage'), '--config-file',
                   state.etc / 'nova/nova.conf', 'cell_v2',
                   'discover_hosts'], state.log / 'databases.log',
                  env=shell.environment(state))
    wait(lambda: any(found.name == host.name
                     for found in admin.compute.hypervisors()),
         timeout_s, f'Nova lists the hypervisor {host.name}')
    wait(lambda: _has_inventory(admin, host), timeout_s,
         f'Placement has the inventory of {host.name}')
    stamp.touch()
    ensure_agent(state, admin, host, timeout_s)


def ensure_agent(state, admin, host, timeout_s):
    """Wait until Neutron binds ports of a host: its agent is alive.

    :raises LabError: if clickos-agent dies or does not report in time.
    """
    name = f'clickos-agent{host.suffix}'
    running = processes.Processes(state)

    def alive():
        running.require(name)
        started = running.started(name).strftime('%Y-%m-%d %H:%M:%S')
        return any(agent.last_heartbeat_at >= started
                   for agent in admin.network.agents(
                       host=host.name, agent_type=_AGENT_TYPE))

    wait(alive, timeout_s, f'Neutron has a report of {name}')


def _has_inventory(admin, host):
    """The scheduler finds no host before Placement knows what it has."""
    return any(any(admin.placement.resource_provider_inventories(provider))
               for provider in admin.placement.resource_providers(
                   name=host.name))


def _service_up(admin, host, started):
    """A report from before this start does not count."""
    return any(s.state == 'up' and s.updated_at
               and s.updated_at >= started.strftime('%Y-%m-%dT%H:%M:%S')
               for s in admin.compute.services(binary='nova-compute',
                                               host=host.name))


def wait(done, timeout_s, what, pause_s=0.2):
    """Wait until a function returns true.

    :raises LabError: after timeout_s, with what it waited for
    """
    deadline_s = time.monotonic() + timeout_s
    while not done():
        if time.monotonic() > deadline_s:
            raise errors.LabError(
                f'{what}: not so after {timeout_s} s; see its log in the '
                'state folder')
        time.sleep(pause_s)


def ensure_zones(admin, hosts):
    """Put each host into its availability zone.

    Nova refuses a host that is in another one, as a killed test leaves it.
    """
    known = {aggregate.name: aggregate
             for aggregate in admin.compute.aggregates()}
    for host in hosts:
        for other in known.values():
            if other.name != host.zone and host.name in (other.hosts or ()):
                admin.compute.remove_host_from_aggregate(other, host.name)
        if host.zone not in known:
            known[host.zone] = admin.compute.create_aggregate(
                name=host.zone, availability_zone=host.zone)
        if host.name not in (known[host.zone].hosts or ()):
            admin.compute.add_host_to_aggregate(known[host.zone], host.name)


def ensure_flavor(admin):
    """Make the public flavor of a ClickOS guest."""
    if not admin.compute.find_flavor(FLAVOR['name']):
        make_flavor(admin)


def make_flavor(admin, **changes):
    """Make a public flavor like that of a ClickOS guest; return it."""
    flavor = admin.compute.create_flavor(**{**FLAVOR, **changes},
                                         is_public=True)
    admin.compute.create_flavor_extra_specs(flavor, _EXTRA_SPECS)
    return flavor


def lift_quotas(admin, project_id):
    """Let a project have any number of servers and ports."""
    admin.compute.update_quota_set(project_id, instances=-1, cores=-1, ram=-1)
    admin.network.update_quota(project_id, ports=-1)


def wait_active(connection, name, count, timeout_s):
    """Wait until this number of servers of a name is ACTIVE.

    :raises LabError: if one is in ERROR, or after timeout_s
    """
    def done():
        servers = list(connection.compute.servers(name=name))
        failed = [each for each in servers if each.status == 'ERROR']
        if failed:
            raise errors.LabError(
                f'{len(failed)} of {count} servers: ERROR: '
                f'{(failed[0].fault or {}).get("message")}')
        return [each.status for each in servers] == ['ACTIVE'] * count
    wait(done, timeout_s, f'{count} servers are ACTIVE', pause_s=_LOOK_S)


def delete_servers(connection, name, timeout_s):
    """Delete all servers of a name, and wait until they are gone.

    :raises LabError: after timeout_s
    """
    for server in connection.compute.servers(name=name):
        connection.compute.delete_server(server)
    wait(lambda: not any(connection.compute.servers(name=name)), timeout_s,
         'deleted servers are gone', pause_s=_LOOK_S)
