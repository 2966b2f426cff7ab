# SPDX-License-Identifier: Apache-2.0
"""Puts the guests of a project on one host, while it has room.

Those of a server group are spread or put together as its policy says. Nova's
own weigher for it has the weight of free memory alone, so the emptier one of
two hosts would get both guests of a pair.

The hops of a chain are guests of one project. Packets between hosts cost
more than those at one switch.
"""

import hashlib

from nova.scheduler import weights

#: More than Nova's own weighers of memory, processors and disk together.
_MULTIPLIER = 10.0
_KINDS = 'clickos-'
#: What a member of the group adds to a host's weight, by policy.
_MEMBERS = {'soft-affinity': 1.0, 'soft-anti-affinity': -1.0}


class ProjectWeigher(weights.BaseHostWeigher):
    """Prefer the host that the project ranks first.

    The rank needs no records, so guests that start at once agree. Servers
    of a server group follow its policy instead.
    """

    def weight_multiplier(self, host_state):
        """Return the same for all hosts."""
        return _MULTIPLIER

    def weigh_objects(self, weighed_obj_list, request_spec):
        """Return 1 for the first host of the project, and 0 for others.

        With a server group, return what its policy makes of the members.
        """
        hosts = [weighed.obj for weighed in weighed_obj_list]
        if not all(map(_is_ours, hosts)):
            return [0.0] * len(hosts)
        group = request_spec.instance_group
        if group:
            return [_MEMBERS.get(group.policy, 0.0) * _members(host, group)
                    for host in hosts]
        ranks = [self._weigh_object(host, request_spec) for host in hosts]
        return [float(rank == max(ranks)) for rank in ranks]

    def _weigh_object(self, host_state, request_spec):
        """Return the host's rank for the project (rendezvous hashing)."""
        name = f'{request_spec.project_id} {host_state.host}'
        return hashlib.sha256(name.encode()).digest()


def _is_ours(host_state):
    return (host_state.hypervisor_type or '').startswith(_KINDS)


def _members(host_state, group):
    """Return how many members a host has, at least.

    The scheduler hears of an instance when it runs. The database knows its
    host before.
    """
    known = len(set(host_state.instances) & set(group.members or ()))
    hosts = group.hosts if 'hosts' in group else ()
    return max(known, int(host_state.host in (hosts or ())))
