# SPDX-License-Identifier: Apache-2.0
"""Ports, passwords and user ids: chosen once, kept in the state folder."""

import grp
import json
import os
import pwd
import random
import secrets
import socket

from clickos_lab import accounts
from clickos_lab import errors

#: Below the range from which the kernel takes ports of its own accord, so
#: that no outgoing connection occupies one of ours between two runs.
_PORTS = range(12000, 32000)

PORT_NAMES = (
    'keystone', 'glance', 'placement', 'neutron', 'nova', 'tacker',
    'clickos', 'horizon', 'heat', 'rabbit', 'rabbit_dist', 'epmd')
#: One user of the message queue for each account.
RABBIT_USERS = ('nova', 'neutron', 'tacker', 'clickos', 'nova-compute',
                'clickos-agent', 'nova-compute-2', 'clickos-agent-2',
                'nova-compute-xen', 'clickos-agent-xen',
                'nova-compute-xen2', 'clickos-agent-xen2',
                'heat', 'nova-compute-fake')
PASSWORD_NAMES = (
    'admin', 'demo', 'horizon_secret', 'rabbit', 'glance', 'placement',
    'neutron', 'nova', 'tacker', 'clickos', 'heat', 'db_keystone',
    'db_glance', 'db_placement', 'db_neutron', 'db_nova', 'db_tacker',
    'db_clickos', 'db_heat', 'heat_key',
    *(f'rabbit_{name}' for name in RABBIT_USERS))
#: Above the ids of Debian's packages and systemd, below those that
#: useradd(8) gives away as subordinate ids: a block for each lab.
_IDS = range(66000, 100000, 100)
#: User ids of a host's guests, one for each domain, and labs that may share a
#: machine.
_DOMAINS, _LABS = 0x8000, 20


class Settings:
    """Settings that differ from one lab to another.

    The dictionaries ``ports`` and ``passwords`` map the names above. Guests
    have user ids from ``guest_uid`` up. The two services that talk to cosmosd
    have ``nova_uid`` and ``agent_uid``. The dictionary ``ids`` maps each
    account and group to its number.

    ``authority`` is the path of the certificate that clients trust, or None
    in a lab without TLS.
    """

    def __init__(self, values, state):
        self.ports = values['ports']
        self.passwords = values['passwords']
        self.guest_uid = values['guest_uid']
        self.nova_uid = values['nova_uid']
        self.agent_uid = values['agent_uid']
        self.authority = str(state.authority) if values['tls'] else None
        self.ids = {**values['ids'], **{name: values[key] for name, key
                                        in accounts.ROLES.items()}}

    def first_uid(self, host):
        """Return the first user id of a process host's guests."""
        return self.guest_uid + host.place * _DOMAINS * _LABS

    def role_uid(self, program, host):
        """Return the user id that is a program's role at a host's cosmosd.

        :param program: of :data:`accounts.ROLES`
        """
        return self.ids[program + host.suffix]

    @classmethod
    def load(cls, state, **changes):
        """Read the settings, or choose and keep them the first time.

        :param changes: of ``tls``, kept from now on
        :raises LabError: if the file is damaged.
        """
        kept = {}
        try:
            if state.settings.exists():
                kept = json.loads(state.settings.read_text())
                cls({'ids': {}, 'tls': False, **kept}, state)
            values = {**_complete(kept), **changes}
            settings = cls(values, state)
        except (ValueError, KeyError, TypeError) as e:
            raise errors.LabError(
                f'{state.settings}: damaged ({e!r}); make clean-demo and '
                'start again')
        if values != kept:
            _write_private(state.settings, json.dumps(values, indent=1))
        return settings

    def require_free_ids(self):
        """Refuse to run as users that the machine has already.

        :raises LabError: naming the id and the account it is for.
        """
        for name, number in self.ids.items():
            if _is_known(number):
                raise errors.LabError(
                    f'user or group id {number} ({name}) belongs to another '
                    'user of this machine; choose new ids with '
                    'make clean-demo')

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
        scheme = 'https' if self.authority else 'http'
        return f'{scheme}://127.0.0.1:{self.ports[name]}{path}'


def _complete(kept):
    """Choose what is not chosen yet; an older lab knew fewer names."""
    ports = dict(kept.get('ports', {}))
    candidates = random.sample(_PORTS, len(_PORTS))
    for name in PORT_NAMES:
        if name not in ports:
            ports[name] = next(p for p in candidates
                               if p not in ports.values() and _is_free(p))
    passwords = {name: secrets.token_urlsafe(24) for name in PASSWORD_NAMES}
    return {
        # Two labs on one machine must not share user ids: one each domain.
        'guest_uid': 200000 + _DOMAINS * random.randrange(_LABS),
        'nova_uid': 64001, 'agent_uid': 64002, 'tls': False, **kept,
        'ports': ports,
        'passwords': {**passwords, **kept.get('passwords', {})},
        'ids': _choose_ids(kept.get('ids', {}))}


def _choose_ids(kept):
    names = sorted({*accounts.ALL, *accounts.GROUPS} - set(accounts.ROLES))
    if set(names) <= set(kept):
        return kept
    while True:
        first = random.choice(_IDS)
        ids = {name: first + i for i, name in enumerate(names)}
        if not any(map(_is_known, ids.values())):
            return ids


def _is_known(number):
    for look_up in (pwd.getpwuid, grp.getgrgid):
        try:
            look_up(number)
            return True
        except KeyError:
            pass
    return False


def _is_free(port):
    with socket.socket() as s:
        s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            s.bind(('127.0.0.1', port))
        except OSError:
            return False
        return True


def _write_private(path, text):
    """Write a file, whole or not at all, that only its owner can read."""
    temporary = path.with_name(path.name + '.new')
    fd = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with open(fd, 'w') as f:
        f.write(text)
    temporary.rename(path)
