# SPDX-License-Identifier: Apache-2.0
"""What the configurations of the services have in common."""

import configparser
import io
import os

from clickos_lab import accounts
from clickos_lab.config import hosts

REGION = 'RegionOne'
SERVICES = ('keystone', 'glance', 'placement', 'neutron', 'nova', 'tacker',
            'clickos')


class Site:
    """One lab: its folders, ports and passwords, as options need them."""

    def __init__(self, state, settings, compute_hosts=(), has_heat=False):
        self.state = state
        self.settings = settings
        self.compute_hosts = compute_hosts
        self.has_heat = has_heat

    def folder(self, account, *names):
        """Make and return a private folder for an account's data."""
        top = self.state.data / account
        top.mkdir(parents=True, exist_ok=True, mode=0o700)
        path = top.joinpath(*names)
        made = [p for p in (path, *path.parents)
                if top in p.parents and not p.exists()]
        number = self.settings.ids[account]
        for folder in reversed(made):
            folder.mkdir(mode=0o700)
            os.chown(folder, number, number)
        accounts.own_tree(top, number)
        return path

    def write(self, name, text, account=None):
        """Write a file below etc that one account can read, or only root."""
        path = self.state.etc / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.parent.chmod(0o711)
        fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with open(fd, 'w') as f:
            os.fchown(fd, 0, self.settings.ids[account] if account else 0)
            os.fchmod(fd, 0o640 if account else 0o600)
            f.write(text)
        return path

    def write_ini(self, name, sections, account=None):
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
        return self.write(name, text.getvalue(), account)

    def write_uwsgi(self, name, account, application, threads=8, more=()):
        """Write the uWSGI configuration of an API service.

        :param application: ``MODULE:NAME``, or the path of a file that has
            one
        :param more: lines of its own
        """
        option = 'module' if isinstance(application, str) else 'wsgi-file'
        lines = ['[uwsgi]', f'socket = {self.api_socket(account)}',
                 f'{option} = {application}', f'threads = {threads}', *more,
                 *_UWSGI]
        return self.write(f'uwsgi/{name}.ini', '\n'.join(lines) + '\n',
                          account)

    def api_socket(self, account):
        """The socket of an API service, which the front connects to."""
        return accounts.socket_folder(self.state, account) / 'api.sock'

    def base(self, account):
        """Options of [DEFAULT] that most services take."""
        return {'transport_url': self.rabbit_url(account, account),
                'host': hosts.PROCESS.name,
                'state_path': self.folder(account),
                'graceful_shutdown_timeout': 2}

    def rabbit_url(self, account, vhost):
        """A bus of the message queue, with the account's own password."""
        password = self.settings.passwords[f'rabbit_{account}']
        # Nova keeps the URL of its cell in its database, for ever.
        vhost = '' if vhost == 'nova' else vhost
        return (f'rabbit://{account}:{password}'
                f'@127.0.0.1:{self.settings.ports["rabbit"]}/{vhost}')

    def database(self, name, user=None):
        """Options of [database] for a schema and the user that owns it."""
        user = user or name
        password = self.settings.passwords[f'db_{user}']
        socket = self.state.run / 'mariadb/mysql.sock'
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
                'service_token_roles_required': True,
                'service_token_roles': 'service'}

    def lock(self, service):
        """Options of [oslo_concurrency]."""
        return {'lock_path': self.folder(service, 'lock')}


_UWSGI = (
    'processes = 1', 'enable-threads = true',
    'master = false', 'die-on-term = true', 'lazy-apps = true',
    'need-app = true', 'single-interpreter = true', 'buffer-size = 65535',
    'socket-timeout = 60',
    # The folder of the socket lets in the front only.
    'chmod-socket = 666', 'listen = 1024',
    # Tokens travel in headers, not in the lines logged here.
    'log-format = %(addr) %(method) %(uri) %(status) %(msecs) ms')


def _text(value):
    return str(value).lower() if isinstance(value, bool) else str(value)
