# SPDX-License-Identifier: Apache-2.0
"""RabbitMQ: a user for each account that needs one, loopback only."""

import base64
import hashlib
import json
import re

from clickos_lab.config import hosts
from clickos_lab.config import tls
from clickos_lab import settings as _settings

#: Exchanges and queues that a user declares and reads, as regular
#: expressions, by bus. Each user also reads the answers to its own calls.
_OWN = {
    'nova': {'nova': 'nova$|conductor|scheduler'},
    'nova-compute': {'nova': 'nova$|compute'},
    'neutron': {'neutron': 'neutron$|neutron-vale$|neutron-vale-plugin|'
                           'neutron-vo-|q-|dhcp_agent|l3_agent'},
    'tacker': {'tacker': 'tacker$|TACKER_'},
    'heat': {'heat': '.'},
    'nova-compute-fake': {'nova': 'nova$|compute'},
    'clickos': {'host': 'openstack$'},
    'clickos-agent': {'host': 'openstack$|clickos-agent',
                      'neutron': r'neutron-vale$|neutron-vale-agent'
                                 r'(_fanout.*|\.%(host)s)?$'}}
#: Those that a user declares and sends to, but does not read.
_OTHERS = {
    ('nova', 'nova'): 'compute',
    ('nova-compute', 'nova'): 'conductor|scheduler_fanout$',
    ('nova-compute-fake', 'nova'): 'conductor|scheduler_fanout$',
    ('neutron', 'neutron'): 'neutron-vale-agent',
    ('clickos', 'host'): 'clickos-agent',
    ('clickos-agent', 'neutron'): 'neutron-vale-plugin'}
#: Answers go through the default exchange, which reaches each queue of a bus.
_ANSWERS, _DEFAULT_EXCHANGE = 'reply_', 'amq[.]default$'
#: Agents answer no call on Neutron's bus.
_SILENT = {('clickos-agent', 'neutron')}
#: Routing keys that an agent sends and receives on Neutron's bus.
_TOPICS = {'exchange': 'neutron-vale', 'write': '^neutron-vale-plugin',
           'read': r'^neutron-vale-agent(\.%s)?$'}


def vhost(host):
    """Return the virtual host of a compute host's clickos-agent."""
    return f'clickos-{host.name}'


def write(site):
    """Write rabbitmq.conf and the users that it loads at each start."""
    _move_old(site.state)
    site.folder('rabbitmq')
    users = site.write('rabbit/users.json', json.dumps(_users(site)),
                       'rabbitmq')
    site.write('rabbit/rabbitmq.conf', '\n'.join((
        f'load_definitions = {users}',
        *_listeners(site),
        'default_user = clickos',
        f'default_pass = {site.settings.passwords["rabbit"]}',
        'log.console = true',
        'log.file = false', '')), 'rabbitmq')
    # The package's own settings in /etc do not apply to the lab.
    site.write('rabbit/rabbitmq-env.conf', '', 'rabbitmq')
    site.write('rabbit/enabled_plugins', '[].\n', 'rabbitmq')


def _listeners(site):
    address = f'127.0.0.1:{site.settings.ports["rabbit"]}'
    if not site.settings.authority:
        return [f'listeners.tcp.1 = {address}']
    return ['listeners.tcp = none', f'listeners.ssl.1 = {address}',
            f'ssl_options.cacertfile = {site.state.authority}',
            f'ssl_options.certfile = {tls.certificate(site.state)}',
            f'ssl_options.keyfile = {tls.key(site.state, "rabbitmq")}',
            'ssl_options.versions.1 = tlsv1.3',
            'ssl_options.versions.2 = tlsv1.2']


def options(site):
    """Return the section [oslo_messaging_rabbit] of a client."""
    plain = {'rabbit_quorum_queue': False, 'heartbeat_in_pthread': False}
    if not site.settings.authority:
        return plain
    return {**plain, 'ssl': True, 'ssl_ca_file': site.state.authority}


def _move_old(state):
    """An older lab kept the queue's data under another name."""
    old, new = state.data / 'rabbit', state.data / 'rabbitmq'
    if old.exists() and not new.exists():
        old.rename(new)


def _users(site):
    names = _settings.RABBIT_USERS
    return {
        'vhosts': [{'name': name} for name in (
            '/', 'neutron', 'tacker', 'heat', *map(vhost, hosts.ALL))],
        'users': [{'name': name, 'tags': [],
                   'hashing_algorithm': 'rabbit_password_hashing_sha256',
                   'password_hash': _hashed(
                       site.settings.passwords[f'rabbit_{name}'])}
                  for name in names],
        'permissions': [found for name in names
                        for found in _permissions(name)],
        'topic_permissions': [_topics(host) for host in hosts.ALL]}


def _permissions(name):
    """Return a user's rights, one for each virtual host it may enter."""
    host = next((h for h in hosts.ALL[1:] if name.endswith(h.suffix)),
                hosts.PROCESS)
    kind = name.removesuffix(host.suffix)
    # clickos-api calls the agents of all hosts.
    its = hosts.ALL if kind == 'clickos' else (host,)
    return [found for bus, own in _OWN[kind].items()
            for found in _rights(name, kind, bus, own, its)]


def _rights(name, kind, bus, own, its):
    for host in its if bus == 'host' else its[:1]:
        reads = f'{own % {"host": re.escape(host.name)}}|{_ANSWERS}'
        made = '|'.join(filter(None, (reads, _OTHERS.get((kind, bus)))))
        default = '' if (kind, bus) in _SILENT else f'|{_DEFAULT_EXCHANGE}'
        yield {'user': name, 'configure': f'^({made})',
               'vhost': {'host': vhost(host), 'nova': '/'}.get(bus, bus),
               'write': f'^({made}{default})', 'read': f'^({reads})'}


def _topics(host):
    read = _TOPICS['read'] % re.escape(host.name)
    return {**_TOPICS, 'user': f'clickos-agent{host.suffix}',
            'vhost': 'neutron', 'read': read}


def _hashed(password):
    """Hash as RabbitMQ does: base64 of salt and SHA-256(salt + password).

    The salt comes from the password, so that the file stays the same.
    """
    salt = hashlib.sha256(b'salt' + password.encode()).digest()[:4]
    digest = hashlib.sha256(salt + password.encode()).digest()
    return base64.b64encode(salt + digest).decode()


def environment(state, settings):
    """Return the environment variables of rabbitmq-server."""
    return {
        'HOME': str(state.data / 'rabbitmq'),
        'RABBITMQ_NODENAME': 'clickos@localhost',
        'RABBITMQ_CONF_ENV_FILE': str(state.etc / 'rabbit/rabbitmq-env.conf'),
        'RABBITMQ_CONFIG_FILE': str(state.etc / 'rabbit/rabbitmq.conf'),
        'RABBITMQ_ENABLED_PLUGINS_FILE':
            str(state.etc / 'rabbit/enabled_plugins'),
        'RABBITMQ_MNESIA_BASE': str(state.data / 'rabbitmq/buses'),
        'RABBITMQ_LOG_BASE': str(state.data / 'rabbitmq/log'),
        'RABBITMQ_PID_FILE': str(state.data / 'rabbitmq/pid'),
        'RABBITMQ_DIST_PORT': str(settings.ports['rabbit_dist']),
        'RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS':
            '+sbwt none +S 2:2 '
            '-kernel inet_dist_use_interface {127,0,0,1}',
        **epmd_environment(settings)}


def epmd_environment(settings):
    """Return the variables that point to our own Erlang port mapper."""
    return {'ERL_EPMD_PORT': str(settings.ports['epmd']),
            'ERL_EPMD_ADDRESS': '127.0.0.1'}
