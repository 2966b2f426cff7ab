# SPDX-License-Identifier: Apache-2.0
"""The guests of this machine, and what of them may be left behind."""

import contextlib
import json
import os
import pathlib
import signal
import time

from clickos_lab.config import hosts
from clickos_lab import errors
from clickos_lab.host import listed
from clickos_lab import settings as _settings
from clickos_lab import shell

DOM0 = '0'


class Guests(listed.Listed):
    """Guests as cosmosd, valed, xenstored and the kernel know them."""

    def __init__(self, state, host=hosts.PROCESS):
        """Know the guests of a process host.

        :param host: of :data:`hosts.PROCESSES`
        """
        self._state = state
        self._host = host
        self._first_uid = _settings.Settings.load(state).first_uid(host)

    def cosmos(self, *arguments):
        return shell.output([
            self._state.binary('cosmos'),
            f'--socket={self._state.run / self._host.nova_socket}',
            *arguments])

    def system(self):
        return f'confined processes of Linux {os.uname().release}'

    def pids(self, domid):
        """Return the processes of a domain: its user id tells them."""
        uid = self._first_uid + domid
        return [pid for pid, owner in self._owners() if owner == uid]

    def identity(self, server_id):
        """Return what no two starts of a guest have in common."""
        guest = self.find(server_id)
        return guest['domid'], guest['created_s'], self.pids(guest['domid'])

    def seen(self, domid):
        """Tell how the system, not cosmosd, sees a domain."""
        pids = ' '.join(map(str, self.pids(domid)))
        return f'process {pids} of uid {self._first_uid + domid}'

    def kill(self, server_id):
        """Kill a guest's process, as a crash would.

        :raises LabError: if the guest has none
        """
        self._signal(server_id, signal.SIGKILL)

    def hang(self, server_id):
        """Let a guest answer nothing, as one that spins.

        :raises LabError: if the guest has no process
        """
        self._signal(server_id, signal.SIGSTOP)

    def _signal(self, server_id, number):
        pids = self.pids(self.find(server_id)['domid'])
        if not pids:
            raise errors.LabError(f'{server_id}: the guest has no process')
        for pid in pids:
            os.kill(pid, number)

    def kill_all(self):
        """Kill every guest of the host, as a power cut would."""
        while pids := [pid for pid, _uid in self._owners()]:
            for pid in pids:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            time.sleep(0.05)

    def _owners(self):
        """Yield (pid, user id) of processes with a guest's user id."""
        for entry in pathlib.Path('/proc').iterdir():
            try:
                uid = entry.stat().st_uid if entry.name.isdigit() else 0
            except OSError:
                continue
            # One that ended and whose parent did not wait has no program.
            if self._first_uid <= uid < self._first_uid + 0x8000 \
                    and (entry / 'exe').exists():
                yield int(entry.name), uid

    def leftovers(self, server_id):
        """List the traces of a server, and of guests cosmosd does not know.

        Once cosmosd forgets a guest, a domain id or port no longer shows its
        owner. So the list has everything that belongs to no guest.
        """
        others = dict(self.listed())
        own = others.pop(server_id, None)
        found = [f'guest {server_id}'] if own else []
        domids = {guest['domid'] for guest in others.values()}
        ports = {(vif['switch'], vif['port'])
                 for guest in others.values() for vif in guest['vifs']}
        found += [f'process {pid} of domain {uid - self._first_uid}'
                  for pid, uid in self._owners()
                  if uid - self._first_uid not in domids]
        found += [f'store keys of domain {domid}'
                  for domid in self._store_domains()
                  if domid != DOM0 and int(domid) not in domids]
        found += [f'switch port {switch}:{port}'
                  for switch, port in self._guest_ports()
                  if (switch, port) not in ports]
        return found

    def _run_folder(self, daemon):
        return self._state.run / self._host.daemon(daemon)

    def _store_domains(self):
        xen = self._state.noxen / 'xen'
        libraries = next(xen.glob('usr/lib/*/libxenstore.so*')).parent
        env = {**shell.environment(self._state),
               'LD_LIBRARY_PATH': str(libraries),
               'XENSTORED_PATH': str(
                   self._run_folder('xenstored') / 'socket')}
        try:
            return shell.output([xen / 'usr/bin/xenstore-list',
                                 '/local/domain'], env=env).split()
        except errors.LabError as e:
            if 'could not list path' in str(e):
                return []       # no domain was ever made
            raise

    def _guest_ports(self):
        ports = json.loads(shell.output([
            self._state.binary('vale-ctl'), '-o', 'json',
            f'--socket={self._run_folder("valed")}/valed.sock', 'ports']))
        return [(port['switch'], port['port']) for port in ports
                if port['kind'] == 'process']
