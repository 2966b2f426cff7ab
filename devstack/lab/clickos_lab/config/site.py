# SPDX-License-Identifier: Apache-2.0
"""What the configurations of the services have in common."""

import configparser
import io
import os

from clickos_lab.config import hosts

REGION = 'RegionOne'
SERVICES = ('keystone', 'glance', 'placement', 'neutron', 'nova', 'tacker',
            'clickos')


class Site:
    """One lab: its folders, ports and passwords, as options need them."""

    def __init__(self, state, settings):
        self.state = state
        self.settings = settings

    def folder(self, *names):
        """Make and return a private folder for a service's data."""
        path = self.state.data.joinpath(*names)
        path.mkdir(parents=True, exist_ok=True, mode=0o700)
        return path

    def write(self, name, text, mode=0o600):
        """Write a file below etc; only root can read it by default."""
        path = self.state.etc / name
        path.parent.mkdir(parents=True, exist_ok=True)
        fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, mode)
        with open(fd, 'w') as f:
            f.write(text)
        return path

    def write_ini(self, name, sections):
        """Write an oslo.config file from a dict of sections."""
        parser = configparser.RawConfigParser()
        parser.optionxform = str
        for section, options in sections.items():
            if section != 'DEFAULT':
                parser.add_section(section)
            for key, value in options.items():
                parser.set(section, key, _text(value))
        text = io.StringIO()
        parser.write(text)
        return self.write(name, text.getvalue())

    def write_uwsgi(self, name, port, module, options=()):
        """Write the uWSGI configuration of an API service."""
        lines = ['[uwsgi]',
                 f'http-socket = 127.0.0.1:{self.settings.ports[port]}',
                 f'module = {module}', *_UWSGI, *options]
        return self.write(f'uwsgi/{name}.ini', '\n'.join(lines) + '\n')

    def base(self, service):
        """Options of [DEFAULT] that most services take."""
        return {'transport_url': self.rabbit_url(),
                'host': hosts.PROCESS.name,
                'state_path': self.folder(service),
                'graceful_shutdown_timeout': 2}

    def rabbit_url(self):
        """The message queue, with its password."""
        return (f'rabbit://clickos:{self.settings.passwords["rabbit"]}'
                f'@127.0.0.1:{self.settings.ports["rabbit"]}/')

    def database(self, name, user=None):
        """Options of [database] for a schema and the user that owns it."""
        user = user or name
        password = self.settings.passwords[f'db_{user}']
        socket = self.state.run / 'mysql.sock'
        return {'connection': f'mysql+pymysql://{user}:{password}@localhost/'
                              f'{name}?unix_socket={socket}&charset=utf8mb4',
                'max_pool_size': 10}

    def auth(self, service):
        """Keystone credentials of a service user."""
        return {'auth_url': self.settings.url('keystone', '/v3'),
                'auth_type': 'password', 'project_domain_id': 'default',
                'user_domain_id': 'default', 'project_name': 'service',
                'username': service,
                'password': self.settings.passwords[service],
                'region_name': REGION}

    def authtoken(self, service):
        """Options of [keystone_authtoken]."""
        return {**self.auth(service),
                'www_authenticate_uri': self.settings.url('keystone', '/v3'),
                'memcached_servers': self.memcached(),
                'service_token_roles_required': True,
                'service_token_roles': 'service'}

    def memcached(self):
        """The token cache: a socket that only root can open."""
        return f'unix:{self.state.run}/memcached.sock'

    def cache(self):
        """Options of [cache]."""
        return {'enabled': True, 'backend': 'dogpile.cache.memcached',
                'memcache_servers': self.memcached()}

    def lock(self, service):
        """Options of [oslo_concurrency]."""
        return {'lock_path': self.folder('lock', service)}


#: Options of [oslo_messaging_rabbit].
RABBIT = {'rabbit_quorum_queue': False, 'heartbeat_in_pthread': False}

_UWSGI = (
    'processes = 1', 'threads = 8', 'enable-threads = true',
    'master = false', 'die-on-term = true', 'lazy-apps = true',
    'need-app = true', 'single-interpreter = true', 'buffer-size = 65535',
    'http-chunked-input = true', 'http-auto-chunked = true',
    'http-raw-body = true', 'socket-timeout = 60',
    # uWSGI's http-socket does not keep connections alive, and says so only
    # if it is told to.
    'add-header = Connection: close',
    # Tokens travel in headers, not in the lines logged here.
    'log-format = %(addr) %(method) %(uri) %(status) %(msecs) ms')


def _text(value):
    return str(value).lower() if isinstance(value, bool) else str(value)
