# SPDX-License-Identifier: Apache-2.0
"""Bringing the whole lab up and taking it down."""

import os
import pathlib
import shutil
import time

from clickos_lab import accounts
from clickos_lab import apt
from clickos_lab import config
from clickos_lab.config import daemons
from clickos_lab.config import hosts
from clickos_lab import databases
from clickos_lab import errors
from clickos_lab import exhaustion
from clickos_lab import heat
from clickos_lab.host import endpoint
from clickos_lab.host import guests
from clickos_lab.host import power
from clickos_lab.host import underlay
from clickos_lab.host import uplinks
from clickos_lab import log
from clickos_lab import openstack
from clickos_lab import processes
from clickos_lab import services
from clickos_lab import settings as _settings
from clickos_lab import shares
from clickos_lab import stamps
from clickos_lab.xen import cable
from clickos_lab.xen import compute
from clickos_lab.xen import host as xen_host
from clickos_lab.xen import keys
from clickos_lab.xen import variants
from clickos_lab.xen import xen_paths


class Lab:
    """One lab: its state folder, settings, services.

    :param others: compute hosts besides :data:`hosts.PROCESS`
    :param has_heat: whether it has Heat and a host for its servers
    """

    def __init__(self, state, others=(), has_heat=False):
        self.state = state
        self._has_heat = has_heat
        self.processes = processes.Processes(state)
        self._hosts = (hosts.PROCESS, *others)
        self._underlay = underlay.Underlay(state)
        self._xens = [compute.XenCompute(state, host) for host in hosts.XENS]
        self._cable = cable.Cable(state)

    def up(self):
        """Start everything and wait until it answers.

        Services that already run with this configuration stay as they are.
        A failure stops everything again; the logs stay.
        """
        _settings.Settings.load(self.state, tls=self.state.wants_tls)
        if self._is_up():
            log.info('the services run already')
            return
        self.down()
        openstack.require_readable(self.state)
        try:
            self._up()
        except BaseException:
            self.down()
            raise

    def _is_up(self):
        if not stamps.fresh(self._stamp(), self._fingerprint()):
            return False
        names = {service.name for service in self._catalog().all()}
        return names <= set(self.processes.names())

    def _catalog(self):
        settings = _settings.Settings.load(self.state)
        return services.Catalog(self.state, settings, self._hosts,
                                self._has_heat)

    def _stamp(self):
        return self.state.run / 'up.stamp'

    def _fingerprint(self):
        """Tell apart services of different programs and settings."""
        ours = pathlib.Path(__file__).parent.rglob('*.py')
        made = (self.state.settings, *self.state.venv.glob('*.stamp'),
                *map(self.state.binary, _DAEMONS))
        return stamps.digest((p for p in (*ours, *made) if p.exists()),
                             variants.chosen(xen_paths.XenPaths(self.state)))

    def _up(self):
        settings = _settings.Settings.load(self.state)
        settings.require_free_ports()
        settings.require_free_ids()
        os.umask(0o077)
        # Sockets and store rings of an earlier run mean nothing any more.
        shutil.rmtree(self.state.run, ignore_errors=True)
        self._make_folders()
        accounts.open_programs(self.state)
        accounts.make_folders(self.state, settings)
        accounts.write_passwd(self.state, settings)
        config.write(self.state, settings, self._hosts, self._has_heat)
        databases.install(self.state, settings)
        self._start_all(settings, self._catalog())
        self._stamp().write_text(self._fingerprint())

    def _start_all(self, settings, catalog):
        from clickos_lab import cloud   # needs the virtual environment
        if hosts.SECOND in self._hosts:
            self._underlay.make()
        queue = catalog.queue()
        self._launch(queue)     # it starts meanwhile
        with log.step('database, store, switch'):
            self._start(catalog.base() + catalog.host())
        # The switch remembers those of a lab that was not taken down.
        endpoint.Endpoint.remove_all(self.state)
        databases.fill(self.state, settings)
        self._start_xens(settings, catalog)
        with log.step('keystone'):
            self._start([catalog.keystone()])
            cloud.fill_catalog(self.state, settings)
        if self._has_heat:
            heat.prepare(self.state, settings)
        with log.step('message queue, first controllers'):
            first = catalog.first()
            self._launch(first)
            self._wait([*queue, *first])
        with log.step('OpenStack services'):
            self._start([*catalog.compute(), *catalog.network(),
                         *catalog.controllers(), *catalog.heat()])
        with log.step('image, flavor, tenant, networks, VIM'):
            cloud.ensure(self.state, settings, self._hosts)
        if self._has_heat:
            heat.ensure(self.state, settings)

    def _start_xens(self, settings, catalog):
        for machine in self._xens:
            if machine.host in self._hosts:
                with log.step(f'Xen host {machine.host.name}'):
                    machine.start()
                    self._plug(machine)
                    self._hand_over_keys(settings, machine)
        self._start(catalog.tunnels())

    def _plug(self, machine):
        """Connect a Xen host that has just started with all others."""
        self._cable.plug(machine, [self._underlay.address(hosts.PROCESS)]
                         if self._underlay.exists() else [])

    def _hand_over_keys(self, settings, machine):
        for user in keys.USERS:
            account = machine.host.tunnel(user)
            machine.hand_over(
                user, accounts.socket_folder(self.state, account),
                settings.ids[account])

    def clean(self):
        """Stop everything and remove the state folder."""
        self.down()
        xen_host.remove_all(self.state)
        added = apt.noted(self.state)
        self.state.remove()
        log.info(f'removed {self.state.root}')
        if added:
            log.info('Debian packages that were installed for the lab and '
                     'stay; remove them with')
            log.info(f'  apt-get purge {" ".join(added)}')

    def _make_folders(self):
        for folder in (self.state.etc, self.state.log, self.state.run,
                       self.state.data, self.state.data / 'home'):
            folder.mkdir(parents=True, exist_ok=True)

    def _start(self, group):
        self._launch(group)
        self._wait(group)

    def _launch(self, group):
        for service in group:
            pid = self.processes.start(
                service.name, service.command, service.env, service.folder)
            if service.group:
                shares.prefer(service.group, pid)

    def _groups(self):
        settings = _settings.Settings.load(self.state)
        return [name(settings, host) for host in hosts.PROCESSES
                for name in (daemons.switch_group, daemons.guests_group)]

    def _wait(self, group):
        for service in group:
            self.processes.wait(
                service.name, service.ready or (lambda: True))

    def restart(self, name):
        """Kill a service of this machine and start it again.

        The guests outlive cosmosd; no worker outlives another service.
        """
        service = next(s for s in self._catalog().all() if s.name == name)
        self.processes.kill(name, workers=not name.startswith('cosmosd'))
        self._start([service])

    def outage(self, name, kind, seconds, tell=lambda: None):
        """Take a service away for a time, then let it come back.

        :param kind: ``stop`` all its processes (SIGSTOP), ``kill`` them, or
            a kind of exhaustion
        :param tell: called when it is away
        """
        if kind == 'stop':
            with self.processes.stopped(name):
                tell()
                time.sleep(seconds)
            return
        if kind in exhaustion.KINDS:
            with exhaustion.of(self.processes.members(name), kind):
                tell()
                time.sleep(seconds)
            self.processes.require(name)
            return
        service = next(s for s in self._catalog().all() if s.name == name)
        self.processes.kill(name, workers=not name.startswith('cosmosd'))
        tell()
        time.sleep(seconds)
        self._start([service])

    def power_cut(self, host):
        """Kill all that runs on a compute host, and boot it.

        A Xen host keeps what its disk has.
        """
        services = {s.name: s for s in self._catalog().all()}
        below, above = power.services(host)
        for name in (*above, *reversed(below)):
            self.processes.kill(name, workers=True)
        if host.is_xen:
            machine = compute.XenCompute(self.state, host)
            machine.power_cut()
            self._plug(machine)
            settings = _settings.Settings.load(self.state)
            self._hand_over_keys(settings, machine)
        else:
            guests.Guests(self.state, host).kill_all()
            power.empty(self.state, below)
        for name in (*below, *above):
            self._start([services[name]])

    def down(self):
        """Stop everything, also what a broken start has left.

        A second Ctrl-C does not interrupt the clean-up after the first.
        """
        with processes.undisturbed():
            self._down()

    def _down(self):
        names = self.processes.names()
        if 'valed' in names:
            self._try('namespaces', endpoint.Endpoint.remove_all, self.state)
            self._try('uplinks', uplinks.Uplinks(self.state).release)
        if names:
            log.info(f'stopping {len(names)} services')
        # Nova must not see the guests end: it would stop their servers.
        below = _daemons_of_hosts()
        self.processes.stop(set(names) - below - set(_LAST))
        for host in hosts.PROCESSES:
            if host.daemon('cosmosd') in names:
                self._try('guests', self._destroy_guests, host)
        self.processes.stop(below & set(names))
        self.processes.stop([n for n in names if n in _LAST], timeout_s=30)
        for machine in self._xens:
            self._try(f'Xen host {machine.host.name}', machine.stop)
        self._try('network of the Xen hosts', self._cable.remove)
        self._try('network between hosts', self._underlay.remove)
        self.processes.kill_strays(self.state.binary('clickos-process'))
        if self.state.settings.exists():
            for group in self._groups():
                shares.remove(group)

    def _destroy_guests(self, host):
        """Guests end with their host, as at a power-off."""
        known = guests.Guests(self.state, host)
        for uuid in known.listed():
            known.cosmos('destroy', uuid)

    @staticmethod
    def _try(what, remove, *arguments):
        """Remove; only warn of a failure, so that the rest still stops."""
        try:
            remove(*arguments)
        except errors.LabError as e:
            log.warn(f'{what}: not all were removed: {e}')


def _daemons_of_hosts():
    return {name for host in hosts.PROCESSES for name in power.daemons(host)}


_DAEMONS = ('valed', 'cosmosd', 'clickos-process')
#: Database and queue stop last, after all their clients.
_LAST = ('mariadb', 'rabbitmq', 'epmd', 'memcached', 'front')
