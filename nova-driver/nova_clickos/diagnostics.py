# SPDX-License-Identifier: Apache-2.0
"""What ``openstack server show --diagnostics`` tells of a running guest.

cosmosd and valed count; nothing here asks the guest.
"""

import time

from nova.objects import diagnostics
from nova.objects import fields

#: Counters of valed for frames that did not reach the guest. Those of rates,
#: filters and links count both directions, so they are in neither sum.
_RX_DROPS = ('dropped_full', 'dropped_too_long')
#: The same for frames that the guest sent.
_TX_DROPS = ('dropped_spoof', 'dropped_type', 'dropped_rogue',
             'dropped_hidden', 'dropped_link_control', 'dropped_malformed',
             'dropped_unknown', 'dropped_flood', 'dropped_loop')


def versioned(guest, ports, host_kind):
    """Return the answer of microversion 2.48 and later.

    :param guest: from cosmosd's ``info``.
    :param ports: from cosmosd's ``vif-list``.
    :param host_kind: from cosmosd's ``host``.
    :returns: Diagnostics
    """
    found = diagnostics.Diagnostics(
        # cosmosd's other states are no running guest; Nova asks for none.
        state=guest['state'],
        # Nova's list is closed and has no name of ours; this one is Xen's.
        driver=fields.HypervisorDriver.XENAPI,
        hypervisor=_hypervisor(host_kind), hypervisor_os='Linux',
        uptime=_uptime_s(guest), config_drive=False,
        memory_details=diagnostics.MemoryDiagnostics(
            maximum=guest['memory_mib'], used=None))
    found.add_cpu(id=0, time=guest['cpu_time_ns'])
    for port in ports:
        found.add_nic(mac_address=port['mac'], **_nic(port['counters']))
    return found


def flat(guest, ports, host_kind):
    """Return the answer of older microversions, a dict of plain values.

    The parameters are those of :func:`versioned`.
    """
    found = {'state': guest['state'], 'hypervisor': _hypervisor(host_kind),
             'uptime_s': _uptime_s(guest), 'memory_mib': guest['memory_mib'],
             'cpu0_time_ns': guest['cpu_time_ns']}
    for port in ports:
        name = 'vif%d' % port['devid']
        found[name + '_mac'] = port['mac']
        found.update({'%s_%s' % (name, key): value
                      for key, value in _nic(port['counters']).items()})
    return found


def _hypervisor(host_kind):
    return 'clickos-' + host_kind


def _uptime_s(guest):
    return max(0, int(time.time()) - guest['created_s'])


def _nic(counters):
    """valed counts as a switch: it receives what the guest transmits."""
    # A cosmosd of before 1.0 has the counter by its name there.
    counters = {'dropped_rogue': counters.get('dropped_role', 0), **counters}
    return {
        'rx_octets': counters['tx_bytes'],
        'rx_packets': counters['tx_packets'],
        'rx_drop': sum(counters[name] for name in _RX_DROPS),
        'tx_octets': counters['rx_bytes'],
        'tx_packets': counters['rx_packets'],
        'tx_drop': sum(counters[name] for name in _TX_DROPS),
    }
