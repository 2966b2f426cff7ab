# SPDX-License-Identifier: Apache-2.0
"""The services: how each is started, and how it tells that it is ready."""

import collections.abc
import dataclasses
import http.client
import pathlib
import socket
import ssl

from clickos_lab import accounts
from clickos_lab.config import daemons
from clickos_lab.config import heat as heat_config
from clickos_lab.config import hosts
from clickos_lab.config import neutron_agents
from clickos_lab.config import rabbit
from clickos_lab import databases
from clickos_lab import entry_points
from clickos_lab import heat
from clickos_lab.host import underlay
from clickos_lab import queues
from clickos_lab import shell
from clickos_lab.xen import compute
from clickos_lab.xen import keys


@dataclasses.dataclass(frozen=True)
class Service:
    """One long-running program."""

    name: str
    command: list
    env: dict
    #: tells whether it answers; None: it is enough that it runs
    ready: collections.abc.Callable | None = None
    #: of :data:`accounts.ALL`; None: root
    account: str | None = None
    #: where it starts
    folder: str = '/'
    #: its control group, whose members guests that spin do not delay
    group: str | None = None


class Catalog:
    """All services of one lab.

    :param compute_hosts: of :data:`hosts.ALL`
    :param has_heat: whether it has Heat and a host for its servers
    """

    def __init__(self, state, settings, compute_hosts=(hosts.PROCESS,),
                 has_heat=False):
        self._state = state
        self._settings = settings
        self._compute_hosts = compute_hosts
        self._has_heat = has_heat

    def all(self):
        """Return every service."""
        return [*self.queue(), *self.base(), *self.host(), *self.tunnels(),
                self.keystone(), *self.first(), *self.controllers(),
                *self.compute(), *self.network(), *self.heat()]

    def queue(self):
        """The message queue, whose start takes longest."""
        settings = self._settings
        return [
            self._service('epmd', 'epmd', ['epmd'],
                          env=rabbit.epmd_environment(settings),
                          ready=self._listens('epmd')),
            self._service(
                'rabbitmq', 'rabbitmq',
                ['/usr/lib/rabbitmq/bin/rabbitmq-server'],
                env=rabbit.environment(self._state, settings),
                ready=self._listens('rabbit'))]

    def base(self):
        """The base of all others besides the queue: cache, database, front."""
        state = self._state
        cache = state.run / 'memcached/memcached.sock'
        return [
            self._service(
                'memcached', 'memcached',
                ['memcached', '-m', '64', '-s', cache, '-a', '0666'],
                ready=_socket_answers(cache)),
            self._mariadb(),
            self._service(
                'front', 'front',
                ['nginx', '-e', 'stderr', '-p', state.run / 'front',
                 '-c', state.etc / 'front/nginx.conf'],
                ready=self._listens('keystone'))]

    def _mariadb(self):
        run = self._state.run / 'mariadb'
        return self._service(
            'mariadb', 'mariadb', [
                'mariadbd', '--no-defaults',
                f'--datadir={self._state.data}/mysql',
                f'--socket={run}/mysql.sock', f'--pid-file={run}/pid',
                '--skip-networking',
                '--skip-log-bin', '--performance-schema=OFF',
                '--max-connections=1000',
                '--character-set-server=utf8mb4',
                # An accepted operation outlives a crash of MariaDB. A power
                # cut loses the last second.
                '--innodb-flush-log-at-trx-commit=2',
                '--innodb-buffer-pool-size=128M'],
            ready=lambda: databases.ready(self._state))

    def host(self):
        """The process hosts below OpenStack: store, switch, toolstack."""
        return [service for host in self._compute_hosts
                if host.place is not None for service in self._below(host)]

    def _below(self, host):
        store, valed, cosmosd = map(
            host.daemon, ('xenstored', 'valed', 'cosmosd'))
        run = self._state.run
        return [
            self._service(
                store, store, [self._state.noxen / 'xenstored.sh',
                               self._state.noxen, run / store],
                ready=_socket_answers(run / store / 'socket')),
            self._placed(host, self._service(
                valed, valed, self._daemon_of(valed, 'valed'),
                ready=_socket_answers(run / valed / 'valed.sock'))),
            # The one privileged process: it makes guests of other users.
            self._placed(host, self._as_root(
                cosmosd, self._daemon_of(cosmosd, 'cosmosd'),
                ready=_socket_answers(run / cosmosd / 'cosmosd.sock')))]

    def _daemon_of(self, name, program):
        return [self._state.binary(program), '--config',
                self._state.etc / f'{name}.toml']

    def _placed(self, host, service):
        """A service in its host's control group and network namespace."""
        enter = [] if host is hosts.PROCESS else \
            underlay.Underlay(self._state).enter()
        return dataclasses.replace(
            service, command=[*enter, *service.command],
            group=daemons.switch_group(self._settings, host))

    def tunnels(self):
        """Tunnels that bring cosmosd's socket here from Xen, one a role."""
        return [self._tunnel(host, user) for host in self._compute_hosts
                if host.is_xen for user in keys.USERS]

    def _tunnel(self, host, user):
        name = host.tunnel(user)
        folder = accounts.socket_folder(self._state, name)
        machine = compute.XenCompute(self._state, host)
        return self._service(
            name, name, machine.tunnel(user, folder),
            ready=_socket_answers(folder / 'sock'))

    def keystone(self):
        """Keystone, which the others need to start."""
        return self._wsgi('keystone', OS_KEYSTONE_CONFIG_DIR='keystone')

    def first(self):
        """The controllers that the agents of hosts call when they start."""
        return [
            self._wsgi('placement', OS_PLACEMENT_CONFIG_DIR='placement'),
            self._daemon('nova-conductor', 'nova', 'nova/nova.conf',
                         ready=self._is_read('nova', '/', 'conductor')),
            # answers clickos-agent
            self._daemon('neutron-rpc-server', 'neutron',
                         'neutron/neutron.conf',
                         ready=self._is_read('neutron', 'neutron',
                                             'neutron-vale-plugin'))]

    def controllers(self):
        """The other controllers."""
        return [
            self._wsgi('neutron', OS_NEUTRON_CONFIG_DIR='neutron',
                       OS_NEUTRON_CONFIG_FILES='neutron/neutron.conf'),
            # the paste file has to be the first
            self._wsgi('nova', OS_NOVA_CONFIG_DIR='nova',
                       OS_NOVA_CONFIG_FILES='nova/api-paste.ini;'
                                            'nova/nova.conf'),
            self._daemon('nova-scheduler', 'nova', 'nova/nova.conf'),
            self._wsgi('glance', OS_GLANCE_CONFIG_DIR='glance'),
            self._tacker_server(),
            self._daemon('tacker-conductor', 'tacker', 'tacker/tacker.conf'),
            self._wsgi('clickos-api', account='clickos',
                       OS_CLICKOS_CONFIG_FILES='clickos/clickos-api.conf'),
            # Its settings lie where Horizon looks for them (dashboard.py).
            self._wsgi('horizon')]

    def _tacker_server(self):
        state = self._state
        socket_ = accounts.socket_folder(state, 'tacker') / 'api.sock'
        return self._service(
            'tacker-server', 'tacker',
            [state.tool('python'), state.etc / 'tacker/server.py', socket_,
             '--config-file', state.etc / 'tacker/tacker.conf'],
            ready=self._http('tacker'))

    def compute(self):
        """The services that talk to cosmosd, by the user id as a role."""
        return [service for host in self._compute_hosts for service in (
            self._on_host(host, 'nova-compute', 'nova'),
            self._on_host(host, 'clickos-agent', 'clickos'))]

    def network(self):
        """Neutron's own agents, in a lab with two process hosts."""
        if not neutron_agents.wanted(self._compute_hosts):
            return []
        return [self._network_agent(name) for name in neutron_agents.PROGRAMS]

    def _network_agent(self, name):
        agent = self._daemon(name, 'neutron', f'neutron/{name}.conf')
        return dataclasses.replace(agent, command=neutron_agents.command(
            self._state, self._settings.ids['neutron'], agent.command))

    def heat(self):
        """Heat, and a compute host whose servers are names only."""
        if not self._has_heat:
            return []
        packages = {'PYTHONPATH': str(heat.packages(self._state))}
        engine = self._service(
            'heat-engine', 'heat', heat.command(self._state, 'heat-engine'),
            env=packages, ready=self._is_read('heat', 'heat', 'engine'))
        api = self._service(
            'heat', 'heat', [self._state.tool('uwsgi'), '--ini',
                             self._state.etc / 'uwsgi/heat.ini'],
            env=packages, ready=self._http('heat'))
        name = heat_config.COMPUTE
        return [engine, api, self._service(
            name, name, [self._state.tool('nova-compute'), '--config-file',
                         self._state.etc / f'nova/{name}.conf'])]

    def _on_host(self, host, program, folder):
        name = program + host.suffix
        return self._service(
            name, name, [self._state.tool(program), '--config-file',
                         self._state.etc / folder / f'{name}.conf'])

    def _service(self, name, account, command, env=None, ready=None):
        """A service of an account, whose home ends with the run."""
        home = str(accounts.home(self._state, account))
        env = {'HOME': home, 'TMPDIR': home, **(env or {}),
               'XDG_CACHE_HOME': str(entry_points.folder(self._state))}
        prefix = accounts.prefix(self._state, self._settings, account)
        return Service(name, [*prefix, *command],
                       shell.environment(self._state, **env), ready, account,
                       accounts.empty(self._state, account))

    def _as_root(self, name, command, ready=None):
        return Service(name, command, shell.environment(self._state), ready)

    def _wsgi(self, name, account=None, **config):
        """An API service in uWSGI; config: variables with paths in etc."""
        account = account or name
        env = {variable: ';'.join(str(self._state.etc / path)
                                  for path in value.split(';'))
               for variable, value in config.items()}
        return self._service(
            name, account, [self._state.tool('uwsgi'), '--ini',
                            self._state.etc / f'uwsgi/{name}.ini'],
            env=env, ready=self._http(account))

    def _daemon(self, name, account, config, ready=None):
        return self._service(name, account, [
            self._state.tool(name), '--config-file',
            self._state.etc / config], ready=ready)

    def _is_read(self, user, vhost, queue):
        return lambda: queues.is_read(self._settings, user, vhost, queue)

    def _listens(self, port):
        number = self._settings.ports[port]
        return lambda: _connects(socket.AF_INET, ('127.0.0.1', number))

    def _http(self, port):
        number = self._settings.ports[port]
        trusted = self._settings.authority
        return lambda: _http_answers(number, trusted)


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


def _http_answers(port, trusted):
    if trusted:
        connection = http.client.HTTPSConnection(
            '127.0.0.1', port, timeout=10,
            context=ssl.create_default_context(cafile=trusted))
    else:
        connection = http.client.HTTPConnection(
            '127.0.0.1', port, timeout=10)
    try:
        connection.request('GET', '/')
        return connection.getresponse().status < 500
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()
