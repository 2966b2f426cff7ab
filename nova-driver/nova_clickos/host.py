# SPDX-License-Identifier: Apache-2.0
"""The host as Nova sees it: what kind it is and what it has."""

from nova import exception as nova_exception
from nova.objects import fields
import os_resource_classes as orc
from oslo_log import log as logging
from oslo_utils import versionutils

from nova_clickos.conf import CONF
from nova_clickos import exception

LOG = logging.getLogger(__name__)

PROCESS = 'process'
#: Resource class of the places for guests.
GUEST = 'CUSTOM_CLICKOS_GUEST'
_TRAIT = 'CUSTOM_CLICKOS_'


class Host:
    """One cosmosd, which is one Nova node."""

    def __init__(self, client):
        self._client = client

    def check(self):
        """Refuse to serve a host of a kind the operator did not agree to.

        :returns: the kind
        :raises: InvalidConfiguration for a process host without
            ``[clickos] allow_process_host``; CosmosdUnavailable
        """
        with exception.translated('greet cosmosd'):
            hello = self._client.call('hello')
        LOG.info('cosmosd %(version)s on %(socket)s, host kind %(kind)s',
                 {'version': hello['version'], 'kind': hello['host_kind'],
                  'socket': CONF.clickos.cosmosd_socket})
        if hello['host_kind'] == PROCESS and \
                not CONF.clickos.allow_process_host:
            raise nova_exception.InvalidConfiguration(
                'cosmosd runs guests as processes, which isolates less than '
                'Xen; set [clickos] allow_process_host = true to accept that')
        return hello['host_kind']

    def info(self):
        """:returns: cosmosd's own account of the host"""
        with exception.translated('read the state of the host'):
            return self._client.call('host')

    def resources(self, nodename):
        """:returns: the dict of ``get_available_resource``"""
        host = self.info()
        return {
            'vcpus': host['cpus'],
            'vcpus_used': host.get('vcpus_used', host['guests']),
            'memory_mb': host['memory_mib'],
            'memory_mb_used': host['memory_used_mib'],
            'local_gb': host['max_guests'],
            'local_gb_used': host['guests'],
            'disk_available_least': host['max_guests'] - host['guests'],
            'hypervisor_type': hypervisor_type(host),
            'hypervisor_version': _version(host['version']),
            'hypervisor_hostname': nodename,
            'cpu_info': '',
            'numa_topology': None,
            'supported_instances': _supported(host['host_kind']),
        }

    def inventory(self, ratios):
        """Return the inventory for placement.

        The class CUSTOM_CLICKOS_GUEST counts places. A flavor that asks for
        one with ``resources:VCPU=0`` lets guests share processors freely.
        DISK_GB counts places for other flavors: a guest has no disk, but
        Nova lets tenants only use flavors with a disk. Flavors with more
        VCPUs than a guest of this host may have do not fit.

        :param ratios: allocation ratio of each resource class.
        :returns: inventory by resource class
        """
        host = self.info()
        most_vcpus = min(max_vcpus(host), host['cpus'])
        rows = ((orc.VCPU, host['cpus'], most_vcpus),
                (orc.MEMORY_MB, host['memory_mib'], host['memory_mib']),
                (orc.DISK_GB, host['max_guests'], host['max_guests']),
                (GUEST, host['max_guests'], 1))
        return {name: {'total': total, 'reserved': 0, 'min_unit': 1,
                       'max_unit': max_unit, 'step_size': 1,
                       'allocation_ratio': ratios.get(name, 1.0)}
                for name, total, max_unit in rows}

    def traits(self, known):
        """Return the host's traits: ours is CUSTOM_CLICKOS_<kind>.

        An image that asks for it fits this kind of host only. A trait of a
        kind that the host had before is gone.

        :param known: the traits that placement has
        """
        kept = {trait for trait in known if not trait.startswith(_TRAIT)}
        return kept | {_TRAIT + self.info()['host_kind'].upper()}


def max_vcpus(info):
    """Return how many VCPUs a guest of a host may have.

    :param info: what cosmosd says of the host; an earlier cosmosd knows
        guests of one VCPU.
    """
    return info.get('max_vcpus', 1)


def vcpus(client, flavor):
    """Return the argument ``vcpus`` of a guest's creation.

    Placement keeps flavors with more VCPUs than a guest may have from a
    host, unless they have ``resources:VCPU=0``: their guests get as many as
    the host lets them have.

    :param client: cosmosd's client.
    :param flavor: Nova's flavor.
    :returns: keyword arguments; none for one VCPU
    """
    if flavor.vcpus <= 1:
        return {}
    count = min(flavor.vcpus, max_vcpus(client.call('host')))
    return {'vcpus': count} if count > 1 else {}


def hypervisor_type(info):
    """Return the name of a host's kind that Nova shows.

    :param info: what cosmosd says of the host.
    """
    return 'clickos-' + info['host_kind']


def _version(text):
    """Nova wants an integer: 0.1.0 becomes 1000."""
    return versionutils.convert_version_to_int(text.split('-')[0])


def _supported(host_kind):
    """Nova's list of virtualization types has Xen, but no processes."""
    if host_kind == PROCESS:
        return []
    return [(fields.Architecture.X86_64, fields.HVType.XEN,
             fields.VMMode.XEN)]
