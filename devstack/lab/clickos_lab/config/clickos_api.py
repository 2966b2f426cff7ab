# SPDX-License-Identifier: Apache-2.0
"""clickos-api, and clickos-agent for each host."""

from clickos_lab.config import hosts
from clickos_lab.config import options
from clickos_lab.config import site as _site


def write(site):
    """Write the configurations of the API service and of the agents."""
    site.write_ini('clickos/clickos-api.conf', options.merged({
        'DEFAULT': {'transport_url': site.rabbit_url('clickos')},
        'database': site.database('clickos'),
        'keystone_authtoken': site.authtoken('clickos'),
        'nova': site.auth('clickos'),
        'oslo_messaging_rabbit': _site.RABBIT},
        options.of('api', REGION_NAME=_site.REGION)), 'clickos')
    site.write_uwsgi('clickos-api', 'clickos', 'clickos_api.wsgi:application')
    for host in hosts.ALL:
        name = f'clickos-agent{host.suffix}'
        site.write_ini(f'clickos/{name}.conf', options.merged({
            'DEFAULT': {'transport_url': site.rabbit_url(name),
                        'host': host.name},
            'oslo_messaging_rabbit': _site.RABBIT},
            options.of('agent', CLICKOS_COSMOSD_SOCKET=str(
                site.state.run / host.agent_socket))), name)
