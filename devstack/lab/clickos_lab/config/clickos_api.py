# SPDX-License-Identifier: Apache-2.0
"""clickos-api and clickos-agent."""

from clickos_lab.config import site as _site


def write(site):
    """Write the configurations of the API service and of the agent."""
    site.write_ini('clickos/clickos-api.conf', {
        'DEFAULT': {'transport_url': site.rabbit_url()},
        'database': site.database('clickos'),
        'keystone_authtoken': site.authtoken('clickos'),
        'nova': site.auth('clickos'),
        'tacker': {'region_name': _site.REGION},
        'oslo_messaging_rabbit': _site.RABBIT})
    site.write_uwsgi('clickos-api', 'clickos', 'clickos_api.wsgi:application')
    site.write_ini('clickos/clickos-agent.conf', {
        'DEFAULT': {'transport_url': site.rabbit_url(), 'host': _site.HOST},
        'clickos_agent': {
            'cosmosd_socket': site.state.run / 'cosmosd.sock'},
        'oslo_messaging_rabbit': _site.RABBIT})
