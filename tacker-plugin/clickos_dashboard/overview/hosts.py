# SPDX-License-Identifier: Apache-2.0
"""The hosts of ClickOS guests, as Nova and Neutron know them."""

import dataclasses

from django.utils.translation import gettext as _
from openstack_dashboard import api
from openstack_dashboard import policy

#: As the agent reports itself to Neutron.
AGENT_TYPE = 'ClickOS agent'
_RULES = (('compute', 'os_compute_api:os-hypervisors:list-detail'),
          ('network', 'get_agent'))


@dataclasses.dataclass(frozen=True)
class Host:
    """A compute host; the rates are None until its agent reported them."""

    name: str
    guests: int
    memory_used_mib: int
    memory_mib: int
    packets_per_s: int | None
    dropped_per_s: int | None
    troubles: tuple


def allowed(request):
    """Return whether the user may see hosts."""
    return policy.check(_RULES, request)


def listed(request):
    """List the hosts with an agent of ours."""
    agents = {agent.host: agent for agent in api.neutron.agent_list(
        request, agent_type=AGENT_TYPE)}
    return [_host(each, agents[_service(each)['host']])
            for each in api.nova.hypervisor_list(request)
            if _service(each).get('host') in agents]


def _service(hypervisor):
    return hypervisor.service_details or {}


def _host(hypervisor, agent):
    load = (agent.configuration or {}).get('load') or {}
    if not agent.is_alive:
        load = {}
    return Host(hypervisor.name, hypervisor.running_vms,
                hypervisor.memory_used, hypervisor.memory_size,
                load.get('packets_per_s'), load.get('dropped_per_s'),
                tuple(_troubles(hypervisor, agent)))


def _troubles(hypervisor, agent):
    if hypervisor.state != 'up':
        yield _('nova-compute does not answer')
    if hypervisor.status == 'disabled':
        reason = _service(hypervisor).get('disabled_reason') or _('no reason')
        yield _('disabled: %s') % reason
    if not agent.is_alive:
        yield _('clickos-agent does not answer')
