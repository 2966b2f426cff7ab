# SPDX-License-Identifier: Apache-2.0
"""The compute hosts: two on this machine, and two Xen hosts in QEMU.

The second process host has daemons, users and guests of its own. Its switch
runs in a network namespace (host/underlay.py). A cable joins the Xen hosts
with each other and with this machine (xen/cable.py).
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
    #: its availability zone, in a lab with more than one
    zone: str = 'lab'

    @property
    def is_xen(self):
        """Return whether its guests are domains of Xen."""
        return self.place is None

    def tunnel(self, user):
        """Return the account that brings a user's socket of a Xen host.

        :param user: of :data:`clickos_lab.xen.keys.USERS`
        """
        socket = {'nova': self.nova_socket, 'agent': self.agent_socket}[user]
        return socket.partition('/')[0]

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
                  {'create_timeout': 60, 'cosmosd_timeout': 60,
                   'ring_slots': 128})
SECOND_XEN = dataclasses.replace(
    XEN, name='clickos-xen2', suffix='-xen2', nova_socket='xen2-nova/sock',
    agent_socket='xen2-agent/sock', zone='second-xen')
#: Hosts whose guests are processes of this machine.
PROCESSES = (PROCESS, SECOND)
XENS = (XEN, SECOND_XEN)
ALL = (*PROCESSES, *XENS)
