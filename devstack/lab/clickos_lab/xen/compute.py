# SPDX-License-Identifier: Apache-2.0
"""The Xen host as a compute host of the lab's OpenStack.

cosmosd and the switch run in dom0. nova-compute and clickos-agent run
outside and reach cosmosd through SSH, each as a user of its own. The process
of sshd that connects to the socket has that user's id. The id gives it its
role.
"""

import hashlib
import os

from clickos_lab.config import hosts
from clickos_lab import shell
from clickos_lab.xen import files
from clickos_lab.xen import host as _host
from clickos_lab.xen import patched
from clickos_lab.xen import qemu
from clickos_lab.xen import snapshot
from clickos_lab.xen import toolstack
from clickos_lab.xen import variants
from clickos_lab.xen import xen_paths

#: The machine of each Xen host of the cloud, by the host's name in Nova.
MACHINES = {hosts.XEN.name: 'compute', hosts.SECOND_XEN.name: 'compute2'}


def name(host):
    """Return the name of the machine that is a host of the cloud."""
    return MACHINES[host.name]


class XenCompute:
    """One Xen host, its daemons, and the cables to it.

    :param host: of :data:`hosts.XENS`
    """

    def __init__(self, state, host=hosts.XEN):
        self._state = state
        self.host = host
        self._number = hosts.XENS.index(host)
        self._paths = xen_paths.XenPaths(state)
        self._host = _host.Host(self._paths, name(host))
        self.dom0 = self._host.dom0

    def running(self):
        """Return whether the machine runs."""
        return self._host.running()

    def taps(self):
        """Return the interfaces of this machine at the ends of its uplinks.

        Two hosts have different ones, and so have two labs on one machine.
        """
        lab = hashlib.sha256(str(self._state.root).encode()).hexdigest()[:8]
        count = qemu.Machine().uplinks
        first = self._number * count
        return [f'x{lab}-{n}' for n in range(first, first + count)]

    def start(self, disk=None):
        """Start the machine and its daemons: a few seconds.

        :param disk: what :meth:`power_cut` found on the disk
        """
        contents = files.Files()
        variant = variants.chosen(self._paths)
        toolstack.add(self._state, contents, variant=variant)
        toolstack.add_script_settings(contents)
        saved = snapshot.ensure(self._paths, variant)
        self._host.restore(saved, contents, self.taps())
        for tap in self.taps():
            shell.output(['ip', 'link', 'set', tap, 'addrgenmode', 'none'])
            shell.output(['ip', 'link', 'set', tap, 'up'])
        self.dom0.check(f'mkdir -p {toolstack.VALED_STATE}')
        if disk:
            self.dom0.unpack(disk, toolstack.FOLDER)
        toolstack.start(self._host, 'valed', keeps=True)
        self._start_cosmosd()

    def _start_cosmosd(self):
        """Images come from Glance, none is installed."""
        toolstack.start(self._host, 'cosmosd', installed=False,
                        on_demand=True)

    def restart_cosmosd(self):
        """Kill the daemon and start it again."""
        toolstack.kill(self._host, 'cosmosd')
        self._start_cosmosd()

    def power_cut(self):
        """Kill the machine, and boot it with what its disk had.

        dom0 runs from memory: two of its folders are the disk.
        """
        disk = self.dom0.pack(toolstack.FOLDER, toolstack.STATES)
        self._host.kill()
        self.start(disk)

    def xen(self):
        """Return Xen's version, and the names of the patches in dom0."""
        version = self.dom0.check(
            "xl info | sed -n 's/^xen_version *: //p'").strip()
        return version, self.dom0.run(
            f'cat {patched.PATCHES}').out.split()

    def jump_clock(self, seconds):
        """Set the time of day of dom0 forward, or back if negative."""
        self.dom0.check(f'date -u -s "@$(($(date +%s) + {int(seconds)}))"')

    def stop(self):
        """End the machine; its logs go to a folder ``log/xen-compute``."""
        if self.running():
            self._host.collect(self._state.log / f'xen-{self._host.name}')
        self._host.remove()

    def hand_over(self, user, folder, number):
        """Copy what a tunnel needs to where its account can read it."""
        sources = {'key': self._paths.keys / user,
                   'known_hosts': self._paths.keys / 'known_hosts',
                   'ssh_config': self._host.places.ssh_config}
        for name, source in sources.items():
            path = folder / name
            path.write_bytes(source.read_bytes())
            path.chmod(0o400)
            os.chown(path, number, number)

    def tunnel(self, user, folder):
        """Return the command that brings cosmosd's socket here.

        :param user: of :data:`keys.USERS`
        :param folder: of the tunnel's account; it decides who may enter
        """
        options = {'UserKnownHostsFile': folder / 'known_hosts',
                   'StreamLocalBindMask': '0111',
                   'StreamLocalBindUnlink': 'yes',
                   'ExitOnForwardFailure': 'yes', 'ServerAliveInterval': '15'}
        flags = [f'-o{name}={value}' for name, value in options.items()]
        return ['ssh', '-F', folder / 'ssh_config', '-N', '-l', user,
                '-i', folder / 'key', *flags,
                '-L', f'{folder}/sock:{toolstack.FOLDER}/cosmosd.sock',
                'dom0']

    def run(self, program, *arguments):
        """Run ``cosmos`` or ``vale-ctl`` in dom0; return its output."""
        return self.dom0.check(toolstack.command(program, *arguments))
