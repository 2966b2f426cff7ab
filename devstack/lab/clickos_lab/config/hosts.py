# SPDX-License-Identifier: Apache-2.0
"""The compute hosts: two on this machine, and the Xen host in QEMU.

The second process host has daemons, users and guests of its own. Its switch
runs in a network namespace (host/underlay.py).
"""

import dataclasses

from clickos_lab.config import options


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
    #: of devstack/options.conf, for its nova-compute
    groups: tuple
    #: of [clickos] in nova.conf, besides
    options: dict
    #: a process host's place among those of this machine; None on Xen
    place: int | None = None
    #: its availability zone, in a lab with :data:`SECOND`
    zone: str = 'lab'

    def daemon(self, name):
        """Return the name of a daemon of a process host."""
        return name + self.suffix


PROCESS = ComputeHost('clickos-lab', '', 'cosmosd/cosmosd.sock',
                      'cosmosd/cosmosd.sock',
                      options.DEFAULTS['CLICKOS_IMAGE'],
                      ('compute', 'compute-process'), {}, 0)
SECOND = ComputeHost('clickos-lab2', '-2', 'cosmosd-2/cosmosd.sock',
                     'cosmosd-2/cosmosd.sock',
                     options.DEFAULTS['CLICKOS_IMAGE'],
                     ('compute', 'compute-process'), {}, 1, 'second')
#: Emulated: all takes longer, and a guest of 8 MiB has to have room.
XEN = ComputeHost('clickos-xen', '-xen', 'xen-nova/sock', 'xen-agent/sock',
                  options.DEFAULTS['CLICKOS_XEN_IMAGE'], ('compute',),
                  {'create_timeout': 60, 'ring_slots': 128})
#: Hosts whose guests are processes of this machine.
PROCESSES = (PROCESS, SECOND)
ALL = (*PROCESSES, XEN)
