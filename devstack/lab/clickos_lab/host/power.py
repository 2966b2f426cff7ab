# SPDX-License-Identifier: Apache-2.0
"""What a power cut of a compute host ends, and what a boot finds."""

from clickos_lab.xen import keys

_DAEMONS = ('xenstored', 'valed', 'cosmosd')
_OF_OPENSTACK = ('nova-compute', 'clickos-agent')


def daemons(host):
    """Return the daemons of a process host, in the order of its boot."""
    return [host.daemon(name) for name in _DAEMONS]


def services(host):
    """Return two lists of services, each in the order of the boot.

    The services of OpenStack come second; they run here for a Xen host too.
    """
    below = ([host.tunnel(user) for user in keys.USERS] if host.is_xen
             else daemons(host))
    return below, [name + host.suffix for name in _OF_OPENSTACK]


def empty(state, names):
    """Remove the files of daemons below ``run``, as a boot empties /run."""
    for name in names:
        for path in (state.run / name).rglob('*'):
            if not path.is_dir():
                path.unlink()
