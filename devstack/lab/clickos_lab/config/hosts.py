# SPDX-License-Identifier: Apache-2.0
"""The compute hosts: this machine, and the Xen host in QEMU."""

import dataclasses


@dataclasses.dataclass(frozen=True)
class ComputeHost:
    """A host as Nova, Neutron and clickos-api know it.

    Its nova-compute and its clickos-agent run on this machine in any case;
    each has its socket of cosmosd, by the name in the folder ``run``.
    """

    name: str
    #: what tells its services and their files from those of the others
    suffix: str
    nova_socket: str
    agent_socket: str
    #: its name in Glance: the image the host runs
    image: str
    #: of [clickos] in nova.conf
    options: dict


PROCESS = ComputeHost('clickos-lab', '', 'cosmosd/cosmosd.sock',
                      'cosmosd/cosmosd.sock', 'clickos',
                      {'allow_process_host': True})
#: Emulated: all takes longer, and a guest of 8 MiB has to have room.
XEN = ComputeHost('clickos-xen', '-xen', 'xen-nova/sock', 'xen-agent/sock',
                  'clickos-xen', {'create_timeout': 60, 'ring_slots': 128})
ALL = (PROCESS, XEN)
