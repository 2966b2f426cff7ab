# SPDX-License-Identifier: Apache-2.0
"""Neutron: ML2 with the ``vale`` mechanism driver."""

from clickos_lab.config import heat
from clickos_lab.config import neutron_agents
from clickos_lab.config import options
from clickos_lab.config import rabbit
from clickos_lab import paths

_API = paths.REPO / 'devstack/lab/clickos_lab/neutron_wsgi.py'
SWITCH = options.DEFAULTS['CLICKOS_SWITCH']


def write(site):
    """Write neutron.conf (with ML2's sections) and its uWSGI file."""
    has_agents = neutron_agents.wanted(site.compute_hosts)
    plugins = ['router'] * has_agents + [
        options.DEFAULTS['CLICKOS_SERVICE_PLUGINS']]
    site.write_ini('neutron/neutron.conf', options.merged({
        'DEFAULT': {
            **site.base('neutron'), 'core_plugin': 'ml2',
            'service_plugins': ','.join(plugins),
            'auth_strategy': 'keystone',
            'api_paste_config': site.state.venv / 'etc/neutron/api-paste.ini',
            'notify_nova_on_port_data_changes': False,
            # seconds; a server waits for the event of its port, 2 by default
            'send_events_interval': 1,
            'dhcp_agent_notification': has_agents,
            'rpc_workers': 1, 'rpc_state_report_workers': 0,
            'api_workers': 1},
        'database': site.database('neutron'),
        'keystone_authtoken': site.authtoken('neutron'),
        'nova': site.auth('nova'),
        'oslo_concurrency': site.lock('neutron'),
        'oslo_messaging_rabbit': rabbit.options(site)},
        options.of('network'), heat.neutron(site)), 'neutron')
    site.write_uwsgi('neutron', 'neutron', site.write(
        'neutron/wsgi.py', _API.read_text(), 'neutron'))
