# SPDX-License-Identifier: Apache-2.0
"""RabbitMQ: one user with a generated password, loopback only."""


def write(site):
    """Write rabbitmq.conf; naming a user here replaces ``guest``."""
    site.folder('rabbit')
    site.write('rabbit/rabbitmq.conf', '\n'.join((
        f'listeners.tcp.1 = 127.0.0.1:{site.settings.ports["rabbit"]}',
        'default_user = clickos',
        f'default_pass = {site.settings.passwords["rabbit"]}',
        'log.console = true',
        'log.file = false', '')))
    # The package's own settings in /etc do not apply to the lab.
    site.write('rabbit/rabbitmq-env.conf', '')
    site.write('rabbit/enabled_plugins', '[].\n')


def environment(state, settings):
    """Return the environment variables of rabbitmq-server."""
    return {
        'HOME': str(state.data / 'rabbit'),
        'RABBITMQ_NODENAME': 'clickos@localhost',
        'RABBITMQ_CONF_ENV_FILE': str(state.etc / 'rabbit/rabbitmq-env.conf'),
        'RABBITMQ_CONFIG_FILE': str(state.etc / 'rabbit/rabbitmq.conf'),
        'RABBITMQ_ENABLED_PLUGINS_FILE':
            str(state.etc / 'rabbit/enabled_plugins'),
        'RABBITMQ_MNESIA_BASE': str(state.data / 'rabbit/mnesia'),
        'RABBITMQ_LOG_BASE': str(state.log),
        'RABBITMQ_PID_FILE': str(state.data / 'rabbit/pid'),
        'RABBITMQ_DIST_PORT': str(settings.ports['rabbit_dist']),
        'RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS':
            '+sbwt none +S 2:2 '
            '-kernel inet_dist_use_interface {127,0,0,1}',
        **epmd_environment(settings)}


def epmd_environment(settings):
    """Return the variables that point to our own Erlang port mapper."""
    return {'ERL_EPMD_PORT': str(settings.ports['epmd']),
            'ERL_EPMD_ADDRESS': '127.0.0.1'}
