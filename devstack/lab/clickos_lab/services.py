# SPDX-License-Identifier: Apache-2.0
"""The services: how each is started, and how it tells that it is ready."""

import collections.abc
import dataclasses
import http.client
import os
import pathlib
import socket

from clickos_lab.config import hosts
from clickos_lab.config import rabbit
from clickos_lab import databases
from clickos_lab import paths
from clickos_lab import shell
from clickos_lab.xen import compute


@dataclasses.dataclass(frozen=True)
class Service:
    """One long-running program."""

    name: str
    command: list
    env: dict
    #: tells whether it answers; None: it is enough that it runs
    ready: collections.abc.Callable | None = None


class Catalog:
    """All services of one lab.

    :param compute_hosts: of :data:`hosts.ALL`
    """

    def __init__(self, state, settings, compute_hosts=(hosts.PROCESS,)):
        self._state = state
        self._settings = settings
        self._compute_hosts = compute_hosts

    def all(self):
        """Return every service."""
        return [*self.base(), *self.host(), *self.tunnels(), self.keystone(),
                *self.controllers(), *self.compute()]

    def base(self):
        """What everything else needs: queue, cache, database, store."""
        state, settings = self._state, self._settings
        epmd = rabbit.epmd_environment(settings)
        data = state.data / 'mysql'
        return [
            self._service('epmd', ['epmd'], env=epmd,
                          ready=self._listens('epmd')),
            self._service(
                'rabbitmq', ['/usr/lib/rabbitmq/bin/rabbitmq-server'],
                env=rabbit.environment(state, settings),
                ready=self._listens('rabbit')),
            self._service(
                'memcached', ['memcached', '-u', 'root', '-m', '64',
                              '-s', state.run / 'memcached.sock',
                              '-a', '0600'],
                ready=_socket_answers(state.run / 'memcached.sock')),
            self._service(
                'mariadb', [
                    'mariadbd', '--no-defaults', '--user=root',
                    f'--datadir={data}', f'--socket={state.run}/mysql.sock',
                    f'--pid-file={state.run}/mysql.pid', '--skip-networking',
                    '--skip-log-bin', '--performance-schema=OFF',
                    '--max-connections=1000',
                    '--character-set-server=utf8mb4',
                    # An accepted operation outlives a crash of MariaDB,
                    # though not a power cut within a second of it.
                    '--innodb-flush-log-at-trx-commit=2',
                    '--innodb-buffer-pool-size=128M'],
                ready=lambda: databases.ready(state))]

    def host(self):
        """The compute host below OpenStack: store, switch, toolstack."""
        state = self._state
        return [
            self._service(
                'xenstored', [paths.REPO / 'cosmos/noxen/xenstored.sh',
                              state.noxen, state.run / 'xenstore'],
                ready=_socket_answers(state.run / 'xenstore/socket')),
            self._service(
                'valed', [state.binary('valed'), '--config',
                          state.etc / 'valed.toml'],
                ready=_socket_answers(state.run / 'valed.sock')),
            self._service(
                'cosmosd', [state.binary('cosmosd'), '--config',
                            state.etc / 'cosmosd.toml'],
                ready=_socket_answers(state.run / 'cosmosd.sock'))]

    def tunnels(self):
        """What brings cosmosd's socket here from the Xen host, by role."""
        if hosts.XEN not in self._compute_hosts:
            return []
        settings = self._settings
        return [self._tunnel('nova', hosts.XEN.nova_socket,
                             settings.nova_uid),
                self._tunnel('agent', hosts.XEN.agent_socket,
                             settings.agent_uid)]

    def _tunnel(self, user, name, uid):
        socket_ = self._state.run / name
        return self._service(
            f'xen-{user}',
            compute.XenCompute(self._state).tunnel(user, socket_),
            ready=lambda: _handed_over(socket_, uid))

    def keystone(self):
        """Keystone, which the others need to start."""
        return self._wsgi('keystone', OS_KEYSTONE_CONFIG_DIR='keystone')

    def controllers(self):
        """The API services and workers; nova-compute needs the first."""
        return [
            self._wsgi('placement', OS_PLACEMENT_CONFIG_DIR='placement'),
            self._wsgi('neutron', OS_NEUTRON_CONFIG_DIR='neutron',
                       OS_NEUTRON_CONFIG_FILES='neutron/neutron.conf'),
            # answers clickos-agent
            self._daemon('neutron-rpc-server', 'neutron/neutron.conf'),
            # the paste file has to be the first
            self._wsgi('nova', OS_NOVA_CONFIG_DIR='nova',
                       OS_NOVA_CONFIG_FILES='nova/api-paste.ini;'
                                            'nova/nova.conf'),
            self._daemon('nova-conductor', 'nova/nova.conf'),
            self._daemon('nova-scheduler', 'nova/nova.conf'),
            self._wsgi('glance', OS_GLANCE_CONFIG_DIR='glance'),
            self._daemon('tacker-server', 'tacker/tacker.conf',
                         ready=self._http('tacker')),
            self._daemon('tacker-conductor', 'tacker/tacker.conf'),
            self._wsgi('clickos-api', port='clickos',
                       OS_CLICKOS_CONFIG_FILES='clickos/clickos-api.conf')]

    def compute(self):
        """The two services that talk to cosmosd, neither of them root."""
        settings = self._settings
        return [service for host in self._compute_hosts for service in (
            self._on_host(host, 'nova-compute', 'nova', settings.nova_uid),
            self._on_host(host, 'clickos-agent', 'clickos',
                          settings.agent_uid))]

    def _on_host(self, host, program, folder, uid):
        name = program + host.suffix
        return self._service(
            name, [*_as_user(uid), self._state.tool(program),
                   '--config-file', self._state.etc / folder / f'{name}.conf'])

    def _service(self, name, command, env=None, ready=None):
        return Service(name, command,
                       shell.environment(self._state, **(env or {})), ready)

    def _wsgi(self, name, port=None, **config):
        """An API service in uWSGI; config: variables with paths in etc."""
        env = {variable: ';'.join(str(self._state.etc / path)
                                  for path in value.split(';'))
               for variable, value in config.items()}
        return self._service(
            name, [self._state.tool('uwsgi'), '--ini',
                   self._state.etc / f'uwsgi/{name}.ini'],
            env=env, ready=self._http(port or name))

    def _daemon(self, name, config, ready=None):
        command = [self._state.tool(name), '--config-file',
                   self._state.etc / config]
        # tosca-parser leaves each package it unpacked behind.
        return self._service(name, command, ready=ready,
                             env={'TMPDIR': str(self._state.tmp)})

    def _listens(self, port):
        number = self._settings.ports[port]
        return lambda: _connects(socket.AF_INET, ('127.0.0.1', number))

    def _http(self, port):
        number = self._settings.ports[port]
        return lambda: _http_answers(number)


def _as_user(uid):
    """Return a command prefix that drops to a user id.

    One capability stays: to read files. The repository and the state
    folder may lie where only root can look.
    """
    keep = '-all,+dac_read_search'
    return ['setpriv', f'--reuid={uid}', f'--regid={uid}', '--clear-groups',
            '--no-new-privs', f'--inh-caps={keep}', f'--ambient-caps={keep}',
            f'--bounding-set={keep}']


def _connects(family, address):
    with socket.socket(family) as s:
        s.settimeout(2)
        try:
            s.connect(address)
        except OSError:
            return False
        return True


def _socket_answers(path):
    return lambda: pathlib.Path(path).is_socket() and _connects(
        socket.AF_UNIX, str(path))


def _handed_over(path, uid):
    """Give a socket that only root can open to the user it is meant for."""
    if not _socket_answers(path)():
        return False
    os.chown(path, uid, uid)
    return True


def _http_answers(port):
    connection = http.client.HTTPConnection('127.0.0.1', port, timeout=10)
    try:
        connection.request('GET', '/')
        return connection.getresponse().status < 500
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()
