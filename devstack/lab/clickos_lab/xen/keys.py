# SPDX-License-Identifier: Apache-2.0
"""SSH keys: dom0 and the lab know each other, and dom0 admits no other."""

from clickos_lab import shell

ALIAS = 'dom0'
#: Users of dom0 that may do nothing but reach cosmosd's socket, on which
#: their user id is their role.
USERS = {'nova': 64001, 'agent': 64002}


def ensure(places):
    """Make the keys of client, host and users, once."""
    for name in ('client', 'host', *USERS):
        path = places.keys / name
        if not path.exists():
            shell.run(['ssh-keygen', '-q', '-t', 'ed25519', '-N', '',
                       '-C', f'clickos-lab-{name}', '-f', path],
                      places.log / 'xen-keys.log')
    public = (places.keys / 'host.pub').read_text()
    (places.keys / 'known_hosts').write_text(f'{ALIAS} {public}')


def add(places, archive):
    """Put dom0's key and those it lets in into its root."""
    host = places.keys / 'host'
    archive.add_bytes('etc/ssh/host_key', host.read_bytes(), 0o600)
    archive.add_folder('root', 0o700)
    for user, name in {'root': 'client', **{n: n for n in USERS}}.items():
        public = places.keys / f'{name}.pub'
        archive.add_bytes(f'etc/ssh/keys/{user}', public.read_bytes())


def ssh_config(places, port):
    """Return the configuration with which ``ssh dom0`` reaches a host."""
    keys = places.keys
    return (f'Host {ALIAS}\n'
            '  HostName 127.0.0.1\n'
            f'  Port {port}\n'
            '  User root\n'
            f'  HostKeyAlias {ALIAS}\n'
            f'  IdentityFile "{keys}/client"\n'
            f'  UserKnownHostsFile "{keys}/known_hosts"\n'
            '  GlobalKnownHostsFile none\n'
            '  IdentitiesOnly yes\n'
            '  StrictHostKeyChecking yes\n'
            '  BatchMode yes\n'
            '  KexAlgorithms curve25519-sha256\n'
            '  LogLevel ERROR\n')
