# SPDX-License-Identifier: Apache-2.0
"""Neutron: ML2 with the ``vale`` mechanism driver."""

from clickos_lab.config import site as _site

PHYSICAL_NETWORK = 'physnet1'
SWITCH = 'vale0'


def write(site):
    """Write neutron.conf (with ML2's sections) and its uWSGI file."""
    site.write_ini('neutron/neutron.conf', {
        'DEFAULT': {
            **site.base('neutron'), 'core_plugin': 'ml2',
            'service_plugins': 'flow_classifier,sfc',
            'auth_strategy': 'keystone',
            'api_paste_config': site.state.venv / 'etc/neutron/api-paste.ini',
            'notify_nova_on_port_status_changes': False,
            'notify_nova_on_port_data_changes': False,
            'dhcp_agent_notification': False,
            'rpc_workers': 1, 'rpc_state_report_workers': 0,
            'api_workers': 1},
        'database': site.database('neutron'),
        'keystone_authtoken': site.authtoken('neutron'),
        'nova': site.auth('nova'),
        'oslo_concurrency': site.lock('neutron'),
        'oslo_messaging_rabbit': _site.RABBIT,
        'ml2': {'type_drivers': 'vlan', 'tenant_network_types': 'vlan',
                'mechanism_drivers': 'vale',
                'extension_drivers': 'port_security'},
        'sfc': {'drivers': 'vale'}, 'flowclassifier': {'drivers': 'vale'},
        'ml2_type_vlan': {
            'network_vlan_ranges': f'{PHYSICAL_NETWORK}:100:999'},
        'ml2_vale': {'switch_mappings': f'{PHYSICAL_NETWORK}:{SWITCH}'}},
        'neutron')
    site.write_uwsgi('neutron', 'neutron', 'neutron.wsgi.api:application')
