# SPDX-License-Identifier: Apache-2.0
"""Nova's scheduler puts the guests of a project on one host."""

import collections

from nova import objects
from nova.scheduler import host_manager
from nova.scheduler import weights
from oslo_utils import uuidutils
import testtools

from nova_clickos import weigher

HOSTS = [f'compute{number}' for number in range(5)]
KIND = 'clickos-process'

objects.register_all()


def host(name, kind=KIND, free_ram_mb=4096):
    state = host_manager.HostState(name, name, uuidutils.generate_uuid())
    state.hypervisor_type = kind
    state.free_ram_mb = free_ram_mb
    state.cpu_allocation_ratio = state.disk_allocation_ratio = 1.0
    return state


def request(project, group=None):
    return objects.RequestSpec(project_id=project, instance_group=group)


def best(hosts, spec):
    """Return the host that Nova's weighers and this one put first."""
    handler = weights.HostWeightHandler()
    classes = handler.get_matching_classes([
        'nova.scheduler.weights.all_weighers',
        'nova_clickos.weigher.ProjectWeigher'])
    assert weigher.ProjectWeigher in classes
    found = handler.get_weighed_objects([each() for each in classes], hosts,
                                        spec)
    return found[0].obj.host


class ProjectWeigherTest(testtools.TestCase):

    def test_the_guests_of_a_project_share_a_host_and_projects_spread(self):
        chosen = collections.Counter()
        for number in range(100):
            first = best([host(name) for name in HOSTS], request(f'p{number}'))
            # The host stays the first one while its memory shrinks.
            hosts = [host(name, free_ram_mb=1 if name == first else 4096)
                     for name in reversed(HOSTS)]
            self.assertEqual(first, best(hosts, request(f'p{number}')))
            chosen[first] += 1
        self.assertEqual(set(HOSTS), set(chosen))
        self.assertLess(max(chosen.values()), 40)

    def test_a_project_has_one_host_more_if_its_first_is_full(self):
        first = best([host(name) for name in HOSTS], request('p'))
        others = [name for name in HOSTS if name != first]
        seconds = {best([host(name, free_ram_mb=ram) for name in others],
                        request('p')) for ram in (1, 4096)}
        self.assertEqual(1, len(seconds))

    def test_a_server_group_decides_by_its_policy(self):
        group = objects.InstanceGroup(policy='anti-affinity', members=[])
        for number in range(9):
            hosts = [host('roomy', free_ram_mb=4096), host('full'),
                     host('other')]
            hosts[1].free_ram_mb = hosts[2].free_ram_mb = 1
            self.assertEqual('roomy', best(hosts,
                                           request(f'p{number}', group)))

    def test_a_pair_has_two_hosts_though_one_is_roomier(self):
        for policy, wanted in (('soft-anti-affinity', 'other'),
                               ('soft-affinity', 'roomy')):
            for known in ({'hosts': ['roomy'], 'members': []},
                          {'hosts': [], 'members': ['first']}):
                group = objects.InstanceGroup(policy=policy, **known)
                hosts = [host('roomy', free_ram_mb=4096),
                         host('other', free_ram_mb=64)]
                hosts[0].instances = {'first': None}
                self.assertEqual(wanted, best(hosts, request('p', group)))

    def test_hosts_of_other_kinds_are_as_nova_weighs_them(self):
        for number in range(9):
            hosts = [host('kvm', 'QEMU', 4096), host('ours', free_ram_mb=1)]
            self.assertEqual('kvm', best(hosts, request(f'p{number}')))
