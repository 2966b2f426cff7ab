# SPDX-License-Identifier: Apache-2.0
"""Keystone."""


def write(site):
    """Write keystone.conf and its uWSGI file; make the key folders."""
    site.write_ini('keystone/keystone.conf', {
        'DEFAULT': {'debug': False},
        'database': site.database('keystone'),
        # Only keystone opens this memcached: a client unpickles what it reads.
        'cache': {'enabled': True, 'backend': 'dogpile.cache.memcached',
                  'memcache_servers':
                  f'unix:{site.state.run}/memcached/memcached.sock'},
        # Passwords are 192 random bits, so slow hashes protect nothing.
        'identity': {'password_hash_rounds': 4},
        'token': {'provider': 'fernet'},
        'fernet_tokens': {
            'key_repository': site.folder('keystone', 'fernet')},
        'fernet_receipts': {
            'key_repository': site.folder('keystone', 'receipts')},
        'credential': {
            'key_repository': site.folder('keystone', 'credential')},
        'oslo_concurrency': site.lock('keystone')}, 'keystone')
    site.write_uwsgi('keystone', 'keystone', 'keystone.wsgi.api:application')
