# SPDX-License-Identifier: Apache-2.0
"""Ports, passwords and user ids: chosen once, kept in the state folder."""

import json
import os
import random
import secrets
import socket

from clickos_lab import errors

#: Below the range from which the kernel takes ports of its own accord, so
#: that no outgoing connection occupies one of ours between two runs.
_PORTS = range(12000, 32000)

PORT_NAMES = (
    'keystone', 'glance', 'placement', 'neutron', 'nova', 'tacker',
    'clickos', 'rabbit', 'rabbit_dist', 'epmd')
PASSWORD_NAMES = (
    'admin', 'demo', 'rabbit', 'glance', 'placement', 'neutron', 'nova',
    'tacker', 'clickos', 'db_keystone', 'db_glance', 'db_placement',
    'db_neutron', 'db_nova', 'db_tacker', 'db_clickos')


class Settings:
    """What differs from one lab to another.

    ``ports`` and ``passwords`` map the names above; ``guest_uid`` is the
    first of the user ids of guests, ``nova_uid`` and ``agent_uid`` are
    those of the two services that talk to cosmosd.
    """

    def __init__(self, values):
        self.ports = values['ports']
        self.passwords = values['passwords']
        self.guest_uid = values['guest_uid']
        self.nova_uid = values['nova_uid']
        self.agent_uid = values['agent_uid']

    @classmethod
    def load(cls, state):
        """Read the settings, or choose and keep them the first time.

        :raises LabError: if the file is damaged.
        """
        if not state.settings.exists():
            _write_private(state.settings, json.dumps(_choose(), indent=1))
        try:
            settings = cls(json.loads(state.settings.read_text()))
        except (ValueError, KeyError, TypeError) as e:
            raise errors.LabError(
                f'{state.settings}: damaged ({e!r}); make clean-demo and '
                'start again')
        return settings

    def require_free_ports(self):
        """Refuse to start while another program has one of our ports.

        :raises LabError: naming the port and the service it is for.
        """
        for name, port in self.ports.items():
            if not _is_free(port):
                raise errors.LabError(
                    f'port {port} ({name}) is in use by another program; '
                    'stop it, or choose new ports with make clean-demo')

    def url(self, name, path=''):
        """Return the base URL of one of our HTTP services."""
        return f'http://127.0.0.1:{self.ports[name]}{path}'


def _choose():
    ports = {}
    candidates = random.sample(_PORTS, len(_PORTS))
    for name in PORT_NAMES:
        ports[name] = next(p for p in candidates
                           if p not in ports.values() and _is_free(p))
    return {
        'ports': ports,
        'passwords': {n: secrets.token_urlsafe(24) for n in PASSWORD_NAMES},
        # Two labs on one machine must not share user ids: one each domain.
        'guest_uid': 200000 + 0x8000 * random.randrange(20),
        'nova_uid': 64001, 'agent_uid': 64002}


def _is_free(port):
    with socket.socket() as s:
        s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            s.bind(('127.0.0.1', port))
        except OSError:
            return False
        return True


def _write_private(path, text):
    """Write a file only its owner can read; all of it or nothing."""
    temporary = path.with_name(path.name + '.new')
    fd = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with open(fd, 'w') as f:
        f.write(text)
    temporary.rename(path)
