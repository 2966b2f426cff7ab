# SPDX-License-Identifier: Apache-2.0
"""A booted host, saved: others start from it within a second.

The machine's memory is a file. The saved host writes to it. Restored hosts
map it privately: they share unchanged pages and read only pages they use.
The rest of the machine's state is in a
second file (QEMU's migration stream without the shared memory).
"""

import pathlib
import shlex
import shutil
import time

from clickos_lab import errors
from clickos_lab import log
from clickos_lab import shell
from clickos_lab import stamps
from clickos_lab.xen import archive
from clickos_lab.xen import host as _host
from clickos_lab.xen import kernel
from clickos_lab.xen import keys
from clickos_lab.xen import libraries
from clickos_lab.xen import modules
from clickos_lab.xen import netback
from clickos_lab.xen import packages
from clickos_lab.xen import patched
from clickos_lab.xen import qemu
from clickos_lab.xen import root
from clickos_lab.xen import variants

_MAKER = 'snapshot'     # the name of the host that is saved
_SHARED = {'capability': 'x-ignore-shared', 'state': True}
_LOAD_S = 60
_MACHINES = {variants.STOCK: qemu.Machine(),
             # dom0 runs from memory, and has kernels and suspended guests.
             variants.PATCHED: qemu.Machine(
                 root=patched.ROOT, memory_mib=2560, dom0_memory_mib=1024)}
#: The modules on which the content of a snapshot depends.
_MAKES = (archive, kernel, keys, libraries, modules, qemu, root)


class Snapshot:
    """The files of a saved machine."""

    def __init__(self, folder, machine):
        self.machine = machine
        self.memory = folder / 'memory'
        self._state = folder / 'state'
        self.stamp = folder / 'snapshot.stamp'

    def save(self, control):
        """Stop the machine and write its state."""
        control('migrate-set-capabilities', capabilities=[_SHARED])
        control('stop')
        control('migrate', uri=f'exec:cat >{self._quoted()}')
        self._wait(control, 'completed')

    def load(self, control):
        """Take the state into a machine that was started for it."""
        control('migrate-set-capabilities', capabilities=[_SHARED])
        control('migrate-incoming', uri=f'exec:cat {self._quoted()}')
        self._wait(control, 'completed')
        control('cont')

    def _quoted(self):
        return shlex.quote(str(self._state))

    def _wait(self, control, wanted):
        deadline_s = time.monotonic() + _LOAD_S
        while (found := control('query-migrate')).get('status') != wanted:
            if found.get('status') == 'failed' or \
                    time.monotonic() > deadline_s:
                raise errors.LabError(f'{self._state}: {found}')
            time.sleep(0.01)


def ensure(places, variant=variants.STOCK):
    """Build what has changed; return the snapshot of a ready host.

    :param variant: of Xen; the patched one was built with
        :func:`patched.prepare`
    """
    places.create()
    with places.lock():
        packages.ensure(places)
        keys.ensure(places)
        snapshot = Snapshot(places.snapshots[variant], _MACHINES[variant])
        wanted = _fingerprint(places, snapshot.machine)
        if not stamps.fresh(snapshot.stamp, wanted):
            _make(places, snapshot)
            snapshot.stamp.write_text(wanted)
        return snapshot


def _fingerprint(places, machine):
    """Tell apart snapshots of different roots, machines and QEMUs."""
    ours = (pathlib.Path(module.__file__) for module in _MAKES)
    overlay = (p for p in root.OVERLAY.rglob('*') if p.is_file())
    made = (places.packages / 'packages.stamp', places.keys / 'host.pub',
            places.keys / 'client.pub')
    if machine.root:
        made += (netback.module(places), *(
            p for p in patched.folder(places).rglob('*') if p.is_file()))
    version = shell.output([qemu.PROGRAM, '--version'])
    return stamps.digest([*ours, *overlay, *made], repr(machine), version)


def build(places):
    """Build hypervisor, kernel and root."""
    with log.step('Xen, kernel and root of dom0'):
        kernel.build(places)
        root.build(places)


def _make(places, snapshot):
    build(places)
    if snapshot.machine.root:
        patched.root(places)
    shutil.rmtree(snapshot.memory.parent, ignore_errors=True)
    snapshot.memory.parent.mkdir()
    host = _host.Host(places, _MAKER)
    host.remove()
    with log.step('snapshot of a booted host'):
        try:
            host.boot(snapshot.machine, snapshot.memory)
            with host.qmp() as control:
                snapshot.save(control)
        finally:
            host.remove()
