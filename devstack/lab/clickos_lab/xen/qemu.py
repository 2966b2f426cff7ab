# SPDX-License-Identifier: Apache-2.0
"""QEMU's command line for a machine with Xen."""

import dataclasses

PROGRAM = 'qemu-system-x86_64'

#: rdrand: without it every ``xl create`` waits 2.3 s for entropy. ``max``
#: would crash dom0 (SMAP); a second CPU makes all three times slower.
_CPU = 'qemu64,+npt,+rdrand'
_XEN = ('console=com1 com1=115200,8n1 loglvl=info guest_loglvl=all '
        'xpti=no spec-ctrl=no pv-l1tf=no bootscrub=0 dom0_max_vcpus=1')
_DOM0 = ('console=hvc0 panic=1 quiet mitigations=off nokaslr '
         'cryptomgr.notests tsc=reliable')

#: QEMU skips time in which no processor works.
_COUNTED = ('-icount', 'shift=1,sleep=off')
#: What an instruction takes on such a machine.
INSTRUCTION_NS = 2


@dataclasses.dataclass(frozen=True)
class Machine:
    """Properties that a snapshot depends on."""

    memory_mib: int = 2048
    dom0_memory_mib: int = 512
    #: network cards besides that of SSH, ``eth1`` and so on in dom0
    uplinks: int = 5
    #: the daemon that keeps the Xen store: oxenstored or xenstored (adr/0018)
    store: str = 'oxenstored'
    #: the archive of dom0's root, if not that of :mod:`root`; it lies next to
    root: str | None = None
    #: Its clock counts instructions: what a step takes does not depend on
    #: what else this machine does.
    counted: bool = False

    def command(self, places, host, memory, boot, taps=()):
        """Return the command line, paths relative to ``places.root``.

        :param memory: options of the file that is the machine's memory
        :param boot: with False it waits for a saved machine to come in
        :param taps: names of the tap interfaces that QEMU makes here, one
            for each uplink; without them the uplinks lead nowhere
        """
        start = self._boot(places) if boot else ['-incoming', 'defer']
        return [
            PROGRAM, '-accel', 'tcg', *(_COUNTED if self.counted else ()),
            '-smp', '1', '-cpu', _CPU,
            '-object', f'memory-backend-file,id=ram,size={self.memory_mib}M,'
            f'{memory}', '-machine', 'q35,memory-backend=ram',
            '-m', str(self.memory_mib), '-nodefaults', '-no-reboot',
            '-display', 'none', '-monitor', 'none',
            '-serial', f'file:{places.relative(host.console)}',
            '-drive', 'if=none,id=files,format=raw,readonly=on,file='
            f'{places.relative(host.files)}',
            '-device', 'virtio-blk-pci,drive=files',
            '-qmp', f'unix:{places.relative(host.qmp)},server=on,wait=off',
            # dom0 reaches nothing outside; we reach its SSH daemon, on a
            # port of the loopback that the kernel chooses.
            '-netdev', 'user,id=net0,restrict=on,'
            'hostfwd=tcp:127.0.0.1:0-10.0.2.15:22',
            '-device', 'virtio-net-pci,netdev=net0,romfile=',
            *self._uplinks(taps), *start]

    def _uplinks(self, taps):
        """Return the options of the uplinks.

        Their backends may differ when the machine is restored: neither kind
        has a state that QEMU saves.
        """
        nowhere = ['hubport,hubid=0'] * self.uplinks
        # Without virtio's header, as a hub: the card promises dom0 no more.
        behind = [f'tap,ifname={tap},script=no,downscript=no,vnet_hdr=off'
                  for tap in taps] or nowhere
        options = []
        for number, backend in enumerate(behind, 1):
            options += ['-netdev', f'{backend},id=net{number}', '-device',
                        f'virtio-net-pci,netdev=net{number},romfile=']
        return options

    def _boot(self, places):
        memory = f'{self.dom0_memory_mib}M'
        root = places.build / (self.root or places.initrd.name)
        kernel = (f'{places.relative(places.kernel)} {_DOM0} '
                  f'store={self.store}')
        return ['-kernel', places.relative(places.xen),
                '-append', f'{_XEN} dom0_mem={memory},max:{memory}',
                '-initrd', f'{kernel},{places.relative(root)}']
